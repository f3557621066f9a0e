// Bodies and names from hostile people: refused or kept exactly, while others are served.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { freshFolder } from '../processes/folder.ts'
import { HttpBench } from './bench.ts'
import { type Answer, send } from './client.ts'
import { STORES } from './places.ts'

const MIB = 1024 * 1024
const many = (count: number) =>
  `{"type":"x","input":{${Array.from({ length: count }, (_, i) => `"k${i}":1`).join()}}}`

/** Bodies that must be refused, by their status. */
const BODIES: readonly (readonly [string, number, () => string | Uint8Array, object?])[] = [
  ['50 MB', 413, () => `{"type":"x","input":"${'a'.repeat(50 * MIB)}"}`],
  ['a depth of 100,000', 400, () => `{"type":"x","input":${'['.repeat(1e5)}${']'.repeat(1e5)}}`],
  [
    'a depth of 100,000 objects',
    400,
    () => `{"type":"x","input":${'{"a":'.repeat(1e5)}1${'}'.repeat(1e5)}}`,
  ],
  ['a million members', 413, () => many(1e6)],
  ['300,000 members', 400, () => many(3e5)],
  ['a gzip bomb', 415, () => gzipSync(Buffer.alloc(100 * MIB)), { 'content-encoding': 'gzip' }],
  ['no JSON', 400, () => '{"type":'],
  ['no UTF-8', 400, () => Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ['nothing', 400, () => ''],
  ['a list', 400, () => '[]'],
  ['an unknown field', 400, () => '{"type":"x","__proto__":{"hold":true}}'],
  ['a number that loses digits', 400, () => '{"type":"x","input":12345678901234567890}'],
  ['a name of 10 kB', 400, () => `{"type":"${'x'.repeat(10_240)}"}`],
  ['a name with NUL', 400, () => '{"type":"a\\u0000b"}'],
  ['a name with a line feed', 400, () => '{"type":"a\\nb"}'],
  ['a name with half a surrogate pair', 400, () => '{"type":"a\\ud800b"}'],
  ['a key with half a surrogate pair', 400, () => '{"type":"x","key":"\\udfff"}'],
  ['an input with half a surrogate pair', 400, () => '{"type":"x","input":"\\ud800"}'],
  ['an empty name', 400, () => '{"type":""}'],
  ['a reserved name', 400, () => '{"type":"pawl.notice"}'],
  ['an id that is not a UUID', 400, () => '{"type":"x","id":"../../etc"}'],
]

describe.each(STORES)('hostile requests on $name', ({ place }) => {
  it('are refused with a problem, and change nothing', async () => {
    const bench = await HttpBench.open(await place())
    for (const [what, status, body, headers] of BODIES) {
      const answer = await enqueue(bench, body(), headers as Record<string, string> | undefined)
      expect([what, answer.status]).toEqual([what, status])
      expect(answer.json.code).toMatch(/^E_/)
    }
    expect((await bench.get('/api/v1/stats')).lanes.ready).toBe(0)
    expect(({} as { hold?: boolean }).hold).toBe(undefined)
  })

  it('of another process keep nobody from being served meanwhile', async () => {
    const bench = await HttpBench.open(await place())
    const files = BODIES.slice(0, 6).map(([, , body], i) => {
      const file = join(freshFolder(), `body-${i}.json`)
      writeFileSync(file, body())
      return file
    })
    for (const file of files) {
      let isOver = false
      const attack = postFile(bench, file).finally(() => {
        isOver = true
      })
      const statuses = new Set<number>()
      do {
        const { status } = await bench.call('GET', '/api/v1/jobs?limit=10', { role: 'read' })
        statuses.add(status)
      } while (!isOver)
      await attack
      expect([...statuses]).toEqual([200])
    }
  })

  it('keep names and inputs exactly, also strange ones', async () => {
    const bench = await HttpBench.open(await place())
    const names = [
      `a'b`,
      'a"b',
      `'; DROP TABLE pawl_jobs; --`,
      '%',
      '_',
      '$1',
      '../../x',
      '\u202egnp',
    ]
    const more = [
      '<script>',
      'ä'.repeat(255),
      '😀',
      'a/b?c#d%2e',
      '..',
      'a\\b',
      '{id}',
      '__proto__',
    ]
    for (const name of [...names, ...more]) {
      const input = { [name]: name, __proto__: null }
      const body = { type: name, queue: name, tags: [name], key: name, input }
      const { id } = await bench.post('/api/v1/jobs', body)
      const { job } = await bench.get(`/api/v1/jobs/${id}`)
      expect([job.type, job.queue, job.tags, job.key]).toEqual([name, name, [name], name])
      const { items } = await bench.get(`/api/v1/jobs?type=${encodeURIComponent(name)}`)
      expect(items.map((one: { id: string }) => one.id)).toEqual([id])
      const stored = await bench.call('GET', `/api/v1/jobs/${id}/input`)
      expect(JSON.parse(stored.text)).toEqual(JSON.parse(JSON.stringify(input)))
      if (name === '..') continue
      const { queue } = await bench.get(`/api/v1/queues/${encodeURIComponent(name)}`)
      expect(queue.name).toBe(name)
    }
  })

  it('keep a member that is called __proto__, and pollute nothing', async () => {
    const bench = await HttpBench.open(await place())
    const text = '{"type":"x","input":{"__proto__":{"polluted":1},"constructor":{"prototype":2}}}'
    const { id } = (await enqueue(bench, text)).json
    const stored = await bench.call('GET', `/api/v1/jobs/${id}/input`)
    expect(stored.text).toBe('{"__proto__":{"polluted":1},"constructor":{"prototype":2}}')
    expect(({} as { polluted?: number }).polluted).toBe(undefined)
  })

  it('with strange paths and queries are answered with 4xx', async () => {
    const bench = await HttpBench.open(await place())
    const paths = [
      ...[
        '/api/v1/jobs/%00',
        '/api/v1/jobs/%ff',
        '/api/v1/jobs/..%2f..%2fetc%2fpasswd',
        '/api/v1/jobs/%',
      ],
      ...[
        '/api/v1/jobs/%20',
        `/api/v1/jobs/${'x'.repeat(9000)}`,
        '/api/v1/../../etc/passwd',
        '//evil',
      ],
      ...[
        '/api/v1/queues/%ED%A0%80',
        '/api/v1/runs/..%2fx',
        '/api/v1/runs/%2e%2e',
        '/api/v1/jobs/',
      ],
      ...[
        '/api/v1/jobs?error=%00',
        '/api/v1/jobs?limit=1e9',
        '/api/v1/jobs?limit=99999999999999999999',
      ],
      ...['/api/v1/audit?from=-1', '/api/v1/jobs?tag=', '/api/v1/jobs?__proto__=1', '/API/V1/jobs'],
      ...[
        `/api/v1/jobs?tag=${'y'.repeat(300)}`,
        '/api/v1/audit?after=%27',
        '/api/v1/effects?after=%27',
      ],
    ]
    for (const path of paths) {
      const { status } = await bench.call('GET', path)
      expect([path, status >= 400 && status < 500]).toEqual([path, true])
    }
    for (const method of ['PUT', 'PATCH', 'TRACE', 'OPTIONS', 'DELETE']) {
      expect([method, (await bench.call(method, '/api/v1/jobs')).status]).toEqual([method, 405])
    }
  })
})

/** The body as it is, on a connection of its own: it may be closed while the body is sent. */
async function enqueue(
  bench: HttpBench,
  body: string | Uint8Array,
  more: Record<string, string> = {},
): Promise<Answer> {
  const headers = { authorization: `Bearer ${bench.tokens.work}`, connection: 'close', ...more }
  return send(bench.server.url, 'POST', '/api/v1/jobs', { headers, body })
}

/** Sends a file from another process, so that only the work of the server is measured. */
async function postFile({ server, tokens }: HttpBench, file: string): Promise<void> {
  const headers = ['content-type: application/json', `authorization: Bearer ${tokens.work}`]
  const args = ['-s', '-o', '/dev/null', ...headers.flatMap((one) => ['-H', one])]
  const sent = ['--data-binary', `@${file}`, `${server.url}/api/v1/jobs`]
  await once(spawn('curl', [...args, ...sent], { stdio: 'ignore' }), 'exit')
}
