// Work items and artifacts in a run that nothing happens to: done once, remembered, in order.
import { typed } from 'pawl'
import { defineRun, type RunContext } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { eventsOf, freshRuns, outcomeOf, release, releaseOf, storyOf } from './bench.ts'

describe('a run', () => {
  it('goes through its nodes to its end, and its log records each step', async () => {
    const runs = await freshRuns()
    const build = (run: RunContext) => run.work('compile', {}, () => ({ size: 3 }))
    expect(await outcomeOf(runs, releaseOf({ build }))).toMatchObject({ kind: 'done' })
    expect(await storyOf(runs)).toEqual([
      'RUN_CREATED',
      'ARTIFACT_WRITTEN run:definition',
      'WORK_ITEM_STARTED compile',
      'ARTIFACT_WRITTEN result:compile',
      'WORK_ITEM_FINISHED compile',
      'RUN_STATE_CHANGED built',
      'RUN_STATE_CHANGED testing',
      'RUN_STATE_CHANGED shipped',
    ])
    expect(await runs.verify('r1')).toEqual([])
  })

  it('returns the results of work items as they were, also when they are read again', async () => {
    const seen: unknown[] = []
    const value = { at: new Date(0), n: 7n, tags: new Set(['a']) }
    const build = async (run: RunContext) => {
      seen.push(await run.work('rich', {}, () => value), await run.work('rich', {}, () => value))
    }
    const runs = await freshRuns()
    expect(await outcomeOf(runs, releaseOf({ build }))).toMatchObject({ kind: 'done' })
    expect(seen).toStrictEqual([value, value])
    expect(await runs.verify('r1')).toEqual([])
  })

  it('gives its nodes the input that it was started with', async () => {
    const seen: unknown[] = []
    const definition = defineRun({
      name: 'greet',
      machine: release,
      input: typed<{ name: string }>(),
      nodes: {
        build: async (run) => {
          seen.push(run.input.name)
          return 'built'
        },
        built: async () => 'testing',
        testing: async () => 'shipped',
      },
    })
    const runs = await freshRuns()
    const handle = await runs.start(definition, { input: { name: 'ada' } })
    expect(await handle.result()).toMatchObject({ kind: 'done' })
    expect(seen).toEqual(['ada'])
  })

  it('has nodes that the compiler keeps to the edges of the machine', () => {
    const nodes = { built: async () => 'testing', testing: async () => 'shipped' } as const
    const wrong = () =>
      defineRun({
        name: 'wrong',
        machine: release,
        // @ts-expect-error: no edge leads from build to shipped.
        nodes: { ...nodes, build: async () => 'shipped' },
      })
    const incomplete = () =>
      // @ts-expect-error: build has no node.
      defineRun({ name: 'incomplete', machine: release, nodes })
    expect(wrong).toBeTypeOf('function')
    expect(incomplete).toThrow(/build has no node/)
  })
})

describe('an option of a work item or an input that is unknown', () => {
  const calls: Record<string, (run: RunContext) => Promise<unknown>> = {
    work: (run) => run.work('k', { input: 1 } as never, () => 1),
    each: (run) => run.each([1], { key: String, concurency: 1 } as never, () => 1),
    inputFolder: (run) => run.inputFolder('pages', { path: '.', extension: ['.md'] } as never),
  }

  it.each(Object.keys(calls))('is refused by %s', async (name) => {
    const build = async (run: RunContext) => {
      await expect(calls[name]?.(run)).rejects.toMatchObject({ code: 'E_COMMAND_INVALID' })
    }
    expect(await outcomeOf(await freshRuns(), releaseOf({ build }))).toMatchObject({ kind: 'done' })
  })
})

describe('a work item', () => {
  it('runs once, however often it is requested, and returns the same result', async () => {
    let calls = 0
    const results: unknown[] = []
    const ask = async (run: RunContext) => {
      results.push(await run.work('k', { inputs: { n: 1 } }, () => ({ calls: ++calls })))
    }
    const runs = await freshRuns()
    await outcomeOf(runs, releaseOf({ build: ask, built: ask, testing: ask }))
    expect(results).toEqual([{ calls: 1 }, { calls: 1 }, { calls: 1 }])
  })

  it('runs again if a declared input or its code changes, and only then', async () => {
    const done: string[] = []
    const ask = (n: number, code?: string) => async (run: RunContext) => {
      const options = { inputs: { n }, ...(code !== undefined && { code }) }
      await run.work('k', options, () => void done.push(`${n}${code ?? ''}`))
    }
    const build = async (run: RunContext) => {
      await ask(1)(run)
      await ask(1)(run)
      await ask(2)(run)
      await ask(2, 'v1')(run)
      await ask(2, 'v1')(run)
      await ask(2, 'v2')(run)
      await ask(2)(run)
    }
    const runs = await freshRuns()
    expect(await outcomeOf(runs, releaseOf({ build }))).toMatchObject({ kind: 'done' })
    expect(done).toEqual(['1', '2', '2v1', '2v2'])
  })

  it('has what it reads as inputs and what it writes as outputs', async () => {
    const build = async (run: RunContext) => {
      await run.artifact('source').write('one two')
      await run.work('count', {}, async () => {
        const words = (await run.artifact('source').text()).split(' ')
        await run.artifact('count').writeJson({ words: words.length }, { schemaId: 'count/1' })
        // Its own writing is there for itself, and is no input.
        expect(await run.artifact('count').json()).toEqual({ words: 2 })
      })
    }
    const runs = await freshRuns()
    const { run } = await outcomeOf(runs, releaseOf({ build }))
    const { source, count } = run.artifacts_index
    expect(run.work_items.count).toMatchObject({ inputs: { source: source?.sha256 }, declared: [] })
    expect(count).toMatchObject({ work_item: 'count', schema_id: 'count/1' })
    expect(source).toMatchObject({ work_item: null })
  })

  it('that replaces an artifact that it read runs again after another item wrote it', async () => {
    const done: string[] = []
    const mend = (run: RunContext) =>
      run.work('mend', {}, async () => {
        const text = run.artifact('text')
        done.push(await text.text())
        await text.write(`${await text.text()}!`)
      })
    const write = (run: RunContext, n: number) =>
      run.work('write', { inputs: { n } }, () => run.artifact('text').write(`v${n}`))
    const build = async (run: RunContext) => {
      await write(run, 1)
      await mend(run)
      await mend(run)
      await write(run, 1)
      await mend(run)
      await write(run, 2)
      await mend(run)
      await mend(run)
    }
    const runs = await freshRuns()
    expect(await outcomeOf(runs, releaseOf({ build }))).toMatchObject({ kind: 'done' })
    expect(done).toEqual(['v1', 'v2'])
  })

  it('leaves no outputs if it fails, and the run stops', async () => {
    let isMended = false
    const build = (run: RunContext) =>
      run.work('k', {}, async () => {
        await run.artifact('half').write('half')
        if (!isMended) throw new Error('the disk of the printer is full')
      })
    const runs = await freshRuns()
    const outcome = await outcomeOf(runs, releaseOf({ build }))
    expect(outcome).toMatchObject({ kind: 'stopped', run: { run_state: 'build' } })
    expect(outcome.run.artifacts_index.half).toBeUndefined()
    expect(outcome.run.work_items.k).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('the printer'),
    })
    expect(outcome.run.issues['NodeFailed:build']).toMatchObject({ status: 'open' })
    isMended = true
    const resumed = await (await runs.resume('r1')).result()
    expect(resumed).toMatchObject({ kind: 'done' })
    expect(resumed.run.issues['NodeFailed:build']).toMatchObject({ status: 'resolved' })
    expect(resumed.run.work_items.k).toMatchObject({ status: 'finished', attempts: 2 })
  })

  it('cannot be requested inside another item, nor twice at once', async () => {
    const errors: unknown[] = []
    const build = async (run: RunContext) => {
      await run.work('outer', {}, async () => {
        await run.work('inner', {}, () => 1).catch((error) => errors.push(error.code))
      })
      const first = run.work('same', {}, () => 1)
      await run.work('same', {}, () => 2).catch((error) => errors.push(error.code))
      await first
    }
    const runs = await freshRuns()
    await outcomeOf(runs, releaseOf({ build }))
    expect(errors).toEqual(['E_WORK_NESTED', 'E_WORK_TWICE'])
  })

  it('has a key for effects that is the same after a crash', async () => {
    const keys: string[] = []
    let fails = true
    const build = async (run: RunContext) => {
      for (const n of [1, 2]) {
        await run.work(`k${n}`, { inputs: { n } }, (item) => {
          keys.push(item.effectKey)
          if (fails && n === 2) throw new Error('no')
        })
      }
    }
    const runs = await freshRuns()
    await outcomeOf(runs, releaseOf({ build }))
    fails = false
    await (await runs.resume('r1')).result()
    expect(keys).toHaveLength(3)
    expect(keys[1]).toBe(keys[2])
    expect(keys[0]).not.toBe(keys[1])
    expect(keys[0]).toMatch(/^r1\/k1\/[0-9a-f]{32}$/)
  })

  it('may have any key, and an unusable one is refused before anything is done', async () => {
    const kept = [
      '__proto__',
      'constructor',
      '../../etc/passwd',
      'a/b\\c',
      '%00',
      'é',
      ' x ',
      'CON',
    ]
    const long = 'k'.repeat(255)
    const refused = ['', '\n', 'a\0b', '\ud800', 'k'.repeat(256)]
    const codes: string[] = []
    const build = async (run: RunContext) => {
      for (const key of [...kept, long]) {
        expect(await run.work(key, {}, () => ({ key }))).toEqual({ key })
        expect(await run.work(key, {}, () => 'again')).toEqual({ key })
      }
      for (const key of refused) {
        const work = () => void codes.push('done')
        await run.work(key, {}, work).catch((error) => codes.push(error.code))
      }
    }
    const runs = await freshRuns()
    const { kind, run } = await outcomeOf(runs, releaseOf({ build }))
    expect(kind).toBe('done')
    expect(Object.keys(run.work_items).sort()).toEqual([...kept, long].sort())
    expect(codes).toEqual(refused.map(() => 'E_COMMAND_INVALID'))
    expect(await runs.verify('r1')).toEqual([])
  })
})

describe('a fan-out', () => {
  it('runs at most the given number at once, with results in the order of keys', async () => {
    let [running, most] = [0, 0]
    const results: string[][] = []
    const { promise: two, resolve: areTwo } = withResolvers()
    const build = async (run: RunContext) => {
      const options = { key: (value: string) => `item:${value}`, concurrency: 2 }
      const all = await run.each(['d', 'b', 'e', 'a', 'c'], options, async (value) => {
        most = Math.max(most, ++running)
        if (running === 2) areTwo()
        await two
        // The first ones take longest.
        const turns = 'e'.charCodeAt(0) - value.charCodeAt(0)
        for (let turn = 0; turn < turns; turn++) await new Promise((go) => setImmediate(go))
        running--
        return value.toUpperCase()
      })
      results.push([...all.keys()], [...all.values()])
    }
    const runs = await freshRuns()
    await outcomeOf(runs, releaseOf({ build }))
    expect(most).toBe(2)
    expect(results).toEqual([
      ['item:a', 'item:b', 'item:c', 'item:d', 'item:e'],
      ['A', 'B', 'C', 'D', 'E'],
    ])
  })

  it('throws the first error in the order of keys, and keeps finished items', async () => {
    const begun: string[] = []
    const build = async (run: RunContext) => {
      const options = { key: (value: string) => value, concurrency: 3 }
      await run.each(['a', 'b', 'c', 'd', 'e'], options, async (value) => {
        begun.push(value)
        // The failure of b comes before that of a.
        if (value === 'a') await new Promise((resolve) => setImmediate(resolve))
        if (value !== 'c') throw new Error(`no ${value}`)
      })
    }
    const runs = await freshRuns()
    const outcome = await outcomeOf(runs, releaseOf({ build }))
    expect(outcome).toMatchObject({ kind: 'stopped', error: { message: 'no a' } })
    expect(begun).toEqual(['a', 'b', 'c'])
    expect(outcome.run.work_items.c).toMatchObject({ status: 'finished' })
  })

  it('refuses two values with one key before it begins', async () => {
    const begun: string[] = []
    const build = (run: RunContext) =>
      run.each(['a', 'a'], { key: (value) => value }, (value) => void begun.push(value))
    const runs = await freshRuns()
    expect(await outcomeOf(runs, releaseOf({ build }))).toMatchObject({
      kind: 'stopped',
      error: { code: 'E_WORK_TWICE' },
    })
    expect(begun).toEqual([])
  })
})

describe('a node', () => {
  it('ends only when all items that it started have ended', async () => {
    const build = (run: RunContext) => {
      void run.work('late', {}, async () => {
        await new Promise((resolve) => setImmediate(resolve))
      })
    }
    const runs = await freshRuns()
    await outcomeOf(runs, releaseOf({ build }))
    const story = await storyOf(runs)
    expect(story.indexOf('WORK_ITEM_FINISHED late')).toBeLessThan(
      story.indexOf('RUN_STATE_CHANGED built'),
    )
  })

  it('cannot use its context after its end', async () => {
    let left: RunContext | undefined
    const build = (run: RunContext) => {
      left = run
    }
    const runs = await freshRuns()
    await outcomeOf(runs, releaseOf({ build }))
    const before = await eventsOf(runs)
    await expect(left?.artifact('x').write('x')).rejects.toMatchObject({ code: 'E_NODE_OVER' })
    await expect(left?.work('x', {}, () => 1)).rejects.toMatchObject({ code: 'E_NODE_OVER' })
    expect(await eventsOf(runs)).toEqual(before)
  })

  it('that throws Terminal, or calls fail, ends the run as failed', async () => {
    const runs = await freshRuns()
    const build = (run: RunContext) => run.fail('the customer is gone')
    expect(await outcomeOf(runs, releaseOf({ build }))).toMatchObject({
      kind: 'failed',
      reason: 'the customer is gone',
      run: { run_state: 'broken' },
    })
  })
})

function withResolvers() {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
