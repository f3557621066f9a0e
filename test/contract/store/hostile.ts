/**
 * Values from anybody: each comes back exactly as it went in, or is refused with a typed error
 * before anything is written. Nothing in between, and nothing that hurts others.
 */
import assert from 'node:assert/strict'
import { PawlError, ValueInvalid } from '../../../src/core/errors.ts'
import { thorough } from '../../support/extent.ts'
import { type Bench, type Cases, CLIENT, one } from './bench.ts'

/** Names that have broken others before. */
const NAMES: Readonly<Record<string, string>> = {
  'a quote': "a'b",
  'a double quote': 'a"b',
  'a statement': "'; drop table jobs; --",
  'a percent sign': '%',
  'an underscore': '_',
  'a placeholder': '$1',
  'a question mark': '?1',
  'a backslash': 'a\\b\\',
  'an emoji': '👩‍👩‍👧‍👦🚀',
  'text from right to left': 'שלום\u202eabc',
  'composed and decomposed letters': 'é e\u0301',
  '255 characters': 'x'.repeat(255),
  '256 characters': 'x'.repeat(256),
  'a high surrogate alone': 'a\ud800b',
  'a low surrogate alone': 'a\udc00b',
  NUL: 'a\0b',
  'a new line': 'a\nb',
  'the prototype': '__proto__',
  'a property of every object': 'constructor',
  'a number': '007',
  'JSON text': '{"a":[1]}',
  'white space around it': ' a ',
  nothing: '',
  'a blank': ' ',
  'an arrow of a path': 'a>b',
  'a slash': 'a/b/1',
}

/** A JSON text of arrays and objects in turn, this deep. */
function nested(depth: number): string {
  const open = Array.from({ length: depth }, (_, i) => (i % 2 === 0 ? '[' : '{"a\\"b":'))
  const close = Array.from({ length: depth }, (_, i) => (i % 2 === 0 ? ']' : '}'))
  return `${open.join('')}1${close.reverse().join('')}`
}

/** JSON texts; the store never looks inside. */
const TEXTS: Readonly<Record<string, string>> = {
  'an escaped NUL': '{"a\\u0000b":"\\u0000"}',
  'an escaped lone surrogate': '"\\ud800"',
  'one megabyte': `"${'x'.repeat(1024 * 1024)}"`,
  'one megabyte of emoji': `"${'🚀'.repeat(256 * 1024)}"`,
  'the deepest nesting that stores take unless told otherwise': nested(512),
  'many brackets beside each other': `[${Array(2000).fill('{"a":[]}').join()}]`,
  'many brackets inside a string': JSON.stringify(`"\\${'[{'.repeat(2000)}`),
  'spaces and order of keys': ' { "b" : 1.0 ,\n\t"a":1e2, "b":2 } ',
  'large numbers': '[12345678901234567890, 1e400, -0]',
  'the prototype': '{"__proto__":{"a":1}}',
  'text from right to left': '"שלום\u202e"',
  'line separators': '"\u2028\u2029"',
  'a placeholder': '"$1 ? :a @b"',
  'no text at all': '',
  'a string that never ends': `"${'[\\"'.repeat(2000)}`,
}

type Kept = Promise<string | undefined>

/** Where a name can go, and how it comes back; nothing where it was refused. */
const PLACES: Readonly<Record<string, (bench: Bench, name: string) => Kept>> = {
  type: async (bench, type) => {
    const answer = await bench.offer({ type })
    if (answer.kind !== 'created') return undefined
    const { items } = await bench.store.list({ type })
    assert.equal(one(await bench.claim({ types: [type] })).job.id, answer.job.id)
    return one(items).type
  },
  queue: async (bench, queue) => {
    const answer = await bench.offer({ queue })
    if (answer.kind !== 'created') return undefined
    assert.equal(one((await bench.store.list({ queue })).items).id, answer.job.id)
    return one(await bench.claim({ queues: [queue] })).job.queue
  },
  key: async (bench, key) => {
    const answer = await bench.offer({ key })
    if (answer.kind !== 'created') return undefined
    assert.equal((await bench.offer({ key })).kind, 'existing')
    assert.equal(one((await bench.store.list({ key })).items).id, answer.job.id)
    return (await bench.store.getByKey('example', key))?.key ?? undefined
  },
  tag: async (bench, tag) => {
    const answer = await bench.offer({ tags: ['before', tag, 'after'] })
    if (answer.kind !== 'created') return undefined
    return one((await bench.store.list({ tag })).items).tags[1]
  },
  worker: async (bench, worker) => {
    const { id } = await bench.enqueue()
    const held = await bench.claim({ worker })
    assert.equal(one(held).job.id, id)
    return (await bench.job(id)).execution?.worker
  },
  'paused queue': async (bench, queue) => {
    await bench.store.pauseQueue(queue, CLIENT)
    const { id } = await bench.enqueue({ queue: 'a\ufffdb' })
    assert.equal(one(await bench.claim()).job.id, id, 'another queue is not paused with it')
    return queue
  },
  'worker that reports': async (bench, id) => {
    await bench.store.reportWorker({ id, state: id, info: id })
    const { id: own, state, info } = one(await bench.store.listWorkers())
    assert.deepEqual([state, info], [own, own])
    await bench.store.removeWorker(id)
    assert.deepEqual(await bench.store.listWorkers(), [])
    return own
  },
  step: async (bench, name) => {
    const held = await bench.hold()
    const answer = await bench.settle(held, { kind: 'step', name, n: 1 }, '1')
    if (answer.kind !== 'done') return undefined
    assert.equal((await bench.settle(held, { kind: 'step', name, n: 1 }, '2')).kind, 'same')
    return one(await bench.store.steps(held.ref)).name
  },
  effect: async (bench, name) => {
    const held = await bench.hold()
    const answer = await bench.store.commit(held, (tx) => {
      tx.effect(name, '1')
      return '1'
    })
    if (answer.kind !== 'done') return undefined
    const effect = one(await bench.store.claimEffects({ limit: 9, leaseMs: 1000 }))
    assert.equal(effect.key, `${held.job.id}/${name}/1`)
    return effect.name
  },
  operator: async (bench, operator) => {
    const { id } = await bench.enqueue()
    const requester = { actor: 'operator', operator, note: 'n' } as const
    const answer = await bench.applyCommand(id, { kind: 'park' }, requester)
    return answer.kind === 'done' ? (await bench.lastFact(id)).operator : undefined
  },
  'key of metadata': async (bench, name) => {
    const { id } = await bench.enqueue()
    const metadata = Object.fromEntries([[name, 'v']])
    const requester = { actor: 'client', metadata } as const
    const answer = await bench.applyCommand(id, { kind: 'prioritise', priority: 1 }, requester)
    if (answer.kind !== 'done') return undefined
    return Object.keys((await bench.lastFact(id)).metadata ?? {})[0]
  },
  'message of a failure': async (bench, message) => {
    const held = await bench.hold()
    const answer = await bench.fail(held, 'terminal', message)
    if (answer.kind !== 'done') return undefined
    if (message !== '') assert.equal((await bench.store.list({ error: message })).items.length, 1)
    return (await bench.job(held.job.id)).error?.message
  },
}

async function keptOrRefused(keeping: Kept, value: string): Promise<void> {
  const kept = await keeping.catch((error: unknown) => {
    if (!(error instanceof PawlError)) throw error
  })
  assert.ok(kept === undefined || kept === value, 'it came back changed')
}

/** Where a payload can go, and how it comes back; nothing where it was refused. */
const PAYLOADS: Readonly<Record<string, (bench: Bench, text: string) => Kept>> = {
  input: async (bench, input) => {
    const answer = await bench.offer({ input })
    if (answer.kind !== 'created') return undefined
    assert.ok(one(await bench.claim()).input === input, 'its holder got another input')
    return (await bench.store.payloads(answer.job.id))?.input
  },
  result: async (bench, text) => {
    const held = await bench.hold()
    if ((await bench.store.commit(held, () => text)).kind !== 'done') return undefined
    const again = await bench.store.commit(held, () => assert.fail('it ran'))
    assert.ok(again.kind === 'same' && again.result === text, 'the result was given back changed')
    return (await bench.store.payloads(held.job.id))?.result
  },
  'implicit result': async (bench, text) => {
    const held = await bench.hold()
    if ((await bench.settle(held, { kind: 'commit' }, text)).kind !== 'done') return undefined
    return (await bench.store.payloads(held.job.id))?.result
  },
  'result of a step': async (bench, text) => {
    const held = await bench.hold()
    const answer = await bench.settle(held, { kind: 'step', name: 'a', n: 1 }, text)
    return answer.kind === 'done' ? one(await bench.store.steps(held.ref)).payload : undefined
  },
  effect: async (bench, text) => {
    const held = await bench.hold()
    const answer = await bench.store.commit(held, (tx) => {
      tx.effect('a', text)
      return '1'
    })
    if (answer.kind !== 'done') return undefined
    return one(await bench.store.claimEffects({ limit: 1, leaseMs: 1000 })).payload
  },
  archive: async (bench, input) => {
    const answer = await bench.offer({ input })
    if (answer.kind !== 'created') return undefined
    await bench.store.cancel([answer.job.id], CLIENT)
    let lines = ''
    const archive = async (text: string) => {
      lines += text
    }
    await bench.store.prune({ endedBefore: bench.store.now() + 1, limit: 1, archive })
    return (JSON.parse(lines.split('\n')[0] ?? '') as { payload: string }).payload
  },
}

/** A text that is not well-formed: no database keeps it as it is. */
const MALFORMED: Readonly<Record<string, string>> = {
  'a lone surrogate': '"\ud800"',
  'a NUL': '"\0"',
}

/** Texts that are nested deeper than a store takes unless told otherwise. */
const TOO_DEEP: Readonly<Record<string, string>> = {
  'one level too many': nested(513),
  'one level too many after a string of brackets': `["]]]\\"]]]",${nested(512)}]`,
  'ten thousand levels': '['.repeat(10_000) + ']'.repeat(10_000),
}

/**
 * Pairs of a place and a value. `npm run prove` puts every value into every place. `npm test` puts
 * every value into every third place, and another third with each value, so none is left out.
 */
function pairs<P, V>(
  places: Readonly<Record<string, P>>,
  values: Readonly<Record<string, V>>,
): { place: string; keep: P; what: string; value: V }[] {
  const step = thorough(3, 1)
  return Object.entries(places).flatMap(([place, keep], i) =>
    Object.entries(values)
      .filter((_, j) => (i + j) % step === 0)
      .map(([what, value]) => ({ place, keep, what, value })),
  )
}

export const hostileCases: Cases = Object.fromEntries([
  ...pairs(PLACES, NAMES).map(({ place, keep, what, value }) => [
    `${place}: ${what} is kept exactly, or refused`,
    (bench: Bench) => keptOrRefused(keep(bench, value), value),
  ]),
  ...pairs(PAYLOADS, TEXTS).map(({ place, keep, what, value }) => [
    `${place}: ${what} is kept byte for byte`,
    async (bench: Bench) => {
      assert.ok((await keep(bench, value)) === value, 'it came back changed')
    },
  ]),
  ...pairs(PAYLOADS, MALFORMED).map(({ place, keep, what, value }) => [
    `${place}: ${what} in the text is kept exactly, or refused`,
    (bench: Bench) => keptOrRefused(keep(bench, value), value),
  ]),
  ...pairs(PAYLOADS, TOO_DEEP).map(({ place, keep, what, value }) => [
    `${place}: ${what} is refused`,
    async (bench: Bench) => {
      const kept = await keep(bench, value).catch((error: unknown) => {
        assert.ok(error instanceof ValueInvalid, String(error))
      })
      assert.equal(kept, undefined)
    },
  ]),
])
