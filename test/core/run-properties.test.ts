// Random histories of runs: what holds after every step, whatever was asked for.
import fc from 'fast-check'
import { decideRun, encode, foldRun, type RunCommand } from 'pawl/rules'
import { documentationRun, type RunEvent } from 'pawl/runs'
import type { RunScript } from 'pawl/testing'
import { describe, expect, it } from 'vitest'
import { anyHistory, anyMoves, play, take } from './run-arbitraries.ts'
import {
  deepFreeze,
  ENDED,
  hash,
  hashesOf,
  newRun,
  runIn,
  snapshotOf,
  staleIn,
  start,
  TRANSITIONAL,
  targetsOf,
  throughText,
  work,
  write,
} from './run-support.ts'

const isEnded = (state: string) => (ENDED as readonly string[]).includes(state)

describe('in a random history', () => {
  it('the fold of the events is the state that was reached step by step', () => {
    fc.assert(
      fc.property(anyHistory, (steps) => {
        const script = newRun()
        for (const step of steps) {
          const before = { run: script.run, length: script.events.length }
          const decision = take(script, step)
          if (decision.kind !== 'facts') {
            expect([script.run, script.events.length]).toEqual([before.run, before.length])
          }
          expect(foldRun(script.events)).toEqual(script.run)
        }
      }),
      { numRuns: 200 },
    )
  })

  it('replay through JSON text gives the same run, and the same bytes of its snapshot', () => {
    fc.assert(
      fc.property(anyHistory, (steps) => {
        const { events, run } = play(steps)
        const replayed = throughText(events)
        expect(foldRun(replayed)).toEqual(run)
        expect(snapshotOf(replayed)).toBe(encode(run))
        expect(replayed.map((event) => encode(event))).toEqual(events.map((event) => encode(event)))
      }),
      { numRuns: 200 },
    )
  })

  it('every change of state is an edge of the table, and every rewind leads back', () => {
    const seen = new Set<string>()
    fc.assert(
      fc.property(anyMoves, (steps) => {
        let state = 'CREATED'
        for (const { type, data } of play(steps).events) {
          if (type !== 'RUN_STATE_CHANGED' && type !== 'RESUME_REWIND') continue
          expect(data.from_state).toBe(state)
          state = data.to_state
          if (type === 'RUN_STATE_CHANGED') {
            expect(targetsOf(data.from_state)).toContain(data.to_state)
            seen.add(data.to_state)
          } else if (data.reason === 'resume') {
            expect(TRANSITIONAL).toContain(data.from_state)
          }
        }
      }),
      { numRuns: 400 },
    )
    // Every state but the first is entered by some history, else this would show little.
    expect(seen.size).toBe(14)
  })
})

describe('at the end and between the steps of a random history', () => {
  it('nothing follows an end but its reason, links to commits and torn tails', () => {
    let ends = 0
    fc.assert(
      fc.property(anyHistory, anyHistory, (steps, more) => {
        const { events } = play([...steps, { kind: 'cancel', reason: 'enough' }, ...more])
        const end = events.findIndex(
          ({ type, data }) => type === 'RUN_STATE_CHANGED' && isEnded(data.to_state),
        )
        const after = events.slice(end + 1).map(({ type }) => type)
        const reason = after[0] === 'RUN_FAILED' || after[0] === 'RUN_CANCELLED' ? 1 : 0
        const state = (events[end] as Extract<RunEvent, { type: 'RUN_STATE_CHANGED' }>).data
        expect(reason).toBe(state.to_state === 'DONE' ? 0 : 1)
        const allowed = ['COMMIT_LINKED', 'LOG_TAIL_DISCARDED']
        expect(after.slice(reason).filter((type) => !allowed.includes(type))).toEqual([])
        ends += after.length > reason ? 1 : 0
      }),
      { numRuns: 200 },
    )
    expect(ends).toBeGreaterThan(0)
  })

  it('numbers have no gap, times never go back, and no event id comes twice', () => {
    fc.assert(
      fc.property(anyHistory, (steps) => {
        const { events } = play(steps)
        expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
        const times = events.map(({ ts }) => ts)
        expect(times).toEqual([...times].sort())
        expect(new Set(events.map(({ event_id }) => event_id)).size).toBe(events.length)
      }),
      { numRuns: 100 },
    )
  })

  it('the same command on the same run is decided the same way, and changes neither', () => {
    fc.assert(
      fc.property(anyHistory, anyHistory, (steps, asked) => {
        const run = deepFreeze(play(steps).run)
        for (const step of deepFreeze(asked)) {
          if (step.kind === 'advance') continue
          const decide = () => decideRun(documentationRun, run, step)
          expect(encode(plain(decide()))).toBe(encode(plain(decide())))
        }
      }),
      { numRuns: 100 },
    )
  })

  it('an answer of "same" means that asking again is still answered so', () => {
    fc.assert(
      fc.property(anyHistory, (steps) => {
        const script = newRun()
        for (const step of steps) {
          if (step.kind === 'advance') take(script, step)
          else if (script.applyCommand(step).kind === 'same') {
            expect(script.applyCommand(step)).toEqual({ kind: 'same' })
          }
        }
      }),
      { numRuns: 100 },
    )
  })
})

/** A decision as plain data: an error is told by its code and message. */
function plain(decision: ReturnType<typeof decideRun>): unknown {
  if (decision.kind !== 'rejected') return decision
  return { ...decision, error: [decision.error.code, decision.error.message] }
}

describe('parallel work', () => {
  it('leaves the same snapshot in whatever order it starts and ends', () => {
    const keys = ['b', 'a', '10', '9', '__proto__', 'constructor', 'é', 'Z']
    /** What each item does, in its own order; the items are mixed at random. */
    const parts = (key: string): RunCommand[] => [
      { kind: 'start-item', key, inputs: { src: hash(1) }, worker: `w-${key}` },
      { kind: 'write-artifact', name: key, path: 'p', sha256: hash(2), worker: 'w', workItem: key },
      { kind: 'change-section', section: key, to: 'drafted' },
      { kind: 'open-issue', issue: key, severity: 'warning', message: 'm' },
      { kind: 'finish-item', key },
      { kind: 'resolve-issue', issue: key },
    ]
    const playMixed = (order: readonly string[]) => {
      const script = runIn('DRAFTING')
      write(script, 'src', 1)
      const left = new Map(keys.map((key) => [key, parts(key)]))
      for (const key of order) {
        const command = left.get(key)?.shift()
        if (command !== undefined) expect(script.applyCommand(command).kind).toBe('facts')
      }
      write(script, 'src', 3)
      return snapshotOf(script.events)
    }
    const all = keys.flatMap((key) => parts(key).map(() => key))
    const expected = playMixed(all)
    fc.assert(
      fc.property(fc.shuffledSubarray(all, { minLength: all.length }), (order) => {
        expect(playMixed(order)).toBe(expected)
      }),
      { numRuns: 200 },
    )
    expect(staleIn(JSON.parse(expected))).toEqual([...keys].sort())
  })
})

/** Item i reads some of the artifacts before it and writes artifact i; the first is a source. */
const anyGraph = fc
  .array(fc.array(fc.nat(), { maxLength: 3 }), { minLength: 1, maxLength: 8 })
  .map((picks) => picks.map((own, i) => [...new Set(own.map((n) => `n${n % (i + 1)}`))]))

const nameOf = (i: number) => `n${i + 1}`

function built(graph: readonly string[][]): RunScript {
  const script = runIn('DRAFTING')
  write(script, 'n0', 'aa')
  for (const [i, reads] of graph.entries()) work(script, nameOf(i), reads, { [nameOf(i)]: i })
  return script
}

/** What depends on the source, found by walking up from each artifact. */
function dependants(graph: readonly string[][]): string[] {
  const depends = (name: string): boolean =>
    name === 'n0' || (graph[Number(name.slice(1)) - 1] ?? []).some(depends)
  return graph.map((_, i) => nameOf(i)).filter(depends)
}

describe('in a random graph of work items', () => {
  it('a change of the source makes exactly its dependants stale', () => {
    fc.assert(
      fc.property(anyGraph, (graph) => {
        const script = built(graph)
        write(script, 'n0', 'bb')
        expect(staleIn(script.run)).toEqual(dependants(graph).sort())
      }),
      { numRuns: 300 },
    )
  })

  it('redoing or revalidating in order makes everything fresh, and touches nothing else', () => {
    fc.assert(
      fc.property(anyGraph, fc.array(fc.boolean(), { minLength: 8 }), (graph, changes) => {
        const script = built(graph)
        write(script, 'n0', 'bb')
        for (const [i, reads] of graph.entries()) {
          const inputs = hashesOf(script.run, reads)
          const item = script.run.work_items[nameOf(i)]
          const name = nameOf(i)
          if (encode(inputs) === encode(item?.inputs)) {
            script.applyCommand({ kind: 'revalidate-artifact', name })
          } else work(script, name, reads, { [name]: changes[i] ? `cc${i}` : i })
        }
        expect(staleIn(script.run)).toEqual([])
        for (const [i, reads] of graph.entries()) {
          expect(start(script, nameOf(i), hashesOf(script.run, reads))).toEqual({ kind: 'same' })
        }
        const redone = Object.entries(script.run.work_items).filter(([, own]) => own.attempts > 1)
        const allowed = dependants(graph)
        for (const [key] of redone) expect(allowed).toContain(key)
      }),
      { numRuns: 300 },
    )
  })
})
