// The parts of the HTTP API by themselves: JSON as text, the document, and the text of metrics.
import { Validator } from '@seriousme/openapi-schema-validator'
import fc from 'fast-check'
import { createPawl } from 'pawl'
import { createHttpApi, type HttpApiOptions } from 'pawl/http'
import { METRICS, PrometheusMetrics } from 'pawl/telemetry'
import { describe, expect, it } from 'vitest'
import { jsonFault, redactJson } from '../../src/http/json-text.ts'
import { openApiOf } from '../../src/http/openapi.ts'
import { PayloadRules } from '../../src/http/payloads.ts'
import { ROUTES } from '../../src/http/routes/index.ts'

const BOUNDS = { depthMax: 5, keysMax: 5 }

describe('a body', () => {
  it.each([
    ['{"a":[[[[1]]]]}', undefined],
    ['[[[[[[1]]]]]]', /deeper than 5/],
    ['"[[[[[[[[{{{{{{{"', undefined],
    ['{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}', /more than 5 members/],
    ['"a:b:c:d:e:f:g:\\":\\":"', undefined],
    ['[9007199254740991, -9007199254740991, 1e400, 0.12345678901234567890]', undefined],
    ['[9007199254740993]', /cannot represent/],
    ['{"a":-12345678901234567890}', /cannot represent/],
    ['"12345678901234567890"', undefined],
  ])('%s is judged by its text', (text, fault) => {
    if (fault === undefined) expect(jsonFault(text, BOUNDS)).toBe(undefined)
    else expect(jsonFault(text, BOUNDS)).toMatch(fault)
  })
})

describe('redaction', () => {
  const names = new Set(['password', 'token'])

  it.each([
    ['{"password":"x"}', '{"password":"[redacted]"}'],
    ['{"a":{"PassWord": {"b":[1,"}"]} , "c":1}}', '{"a":{"PassWord": "[redacted]" , "c":1}}'],
    ['[{"token":12345678901234567890},1]', '[{"token":"[redacted]"},1]'],
    ['{"p\\u0061ssword":"x\\"y"}', '{"p\\u0061ssword":"[redacted]"}'],
    ['{"a":"password","b":"token: x"}', '{"a":"password","b":"token: x"}'],
    ['{"password":null}', '{"password":"[redacted]"}'],
    ['"password"', '"password"'],
    ['{"password":', '{"password":"[redacted]"'],
    ['not json "password" : "x"', 'not json "password" : "[redacted]"'],
  ])('%s', (text, safe) => {
    expect(redactJson(text, names)).toBe(safe)
  })

  it('keeps every other member of any value, and no secret', () => {
    const value = fc.jsonValue()
    fc.assert(
      fc.property(value, value, (kept, secret) => {
        const text = JSON.stringify({ kept, list: [{ token: secret }] })
        const safe = JSON.parse(redactJson(text, new Set(['token'])))
        const isClean = JSON.stringify(kept).toLowerCase().includes('token')
        if (!isClean) expect(safe.kept).toEqual(JSON.parse(JSON.stringify(kept)))
        expect(safe.list[0].token).toBe('[redacted]')
      }),
    )
  })

  it('comes before truncation, which does not cut a character', () => {
    const rules = new PayloadRules(['secret'], 20)
    const { text, truncated, bytes } = rules.view(`{"secret":"${'s'.repeat(100)}"}`)
    expect([text, truncated, bytes]).toEqual(['{"secret":"[redacted', true, 113])
    expect(rules.view(`"${'😀'.repeat(20)}"`).text).toBe(`"${'😀'.repeat(9)}`)
  })
})

describe('the document', () => {
  it('is valid OpenAPI 3.1, with every route', async () => {
    const document = openApiOf(ROUTES) as { paths: Record<string, object> }
    const { valid, errors } = await new Validator().validate(structuredClone(document))
    expect([valid, errors]).toEqual([true, undefined])
    const operations = Object.values(document.paths).flatMap((path) => Object.keys(path))
    expect(operations).toHaveLength(ROUTES.length)
  })
})

const LABEL = String.raw`[a-z]+="(?:[^"\\\n]|\\["\\n])*"`
const NUMBER = String.raw`-?\d+(?:\.\d+)?(?:e[+-]?\d+)?`
/** One line of the text format: a comment, or a sample with escaped labels. */
const LINE = new RegExp(
  `^(?:# (?:HELP|TYPE) [a-z_]+ .+|[a-z_]+(?:\\{${LABEL}(?:,${LABEL})*\\})? ${NUMBER})$`,
)

describe('metrics as text', () => {
  it('escape labels, count histograms cumulatively, and announce every metric', () => {
    const metrics = new PrometheusMetrics()
    const labels = { queue: 'a"b\\c\nd', kind: 'x' }
    metrics.count('pawl_jobs_enqueued_total', labels)
    metrics.count('pawl_jobs_enqueued_total', labels, 2)
    for (const value of [0.001, 0.3, 1000]) {
      metrics.observe('pawl_queue_latency_seconds', { queue: 'q' }, value)
    }
    metrics.gauge('pawl_worker_stuck_slots', { worker: 'w' }, 3)
    const lines = metrics.text().trimEnd().split('\n')
    expect(lines.filter((line) => !LINE.test(line))).toEqual([])
    expect(lines).toContain('pawl_jobs_enqueued_total{queue="a\\"b\\\\c\\nd",kind="x"} 3')
    expect(lines).toContain('pawl_queue_latency_seconds_bucket{queue="q",le="0.25"} 1')
    expect(lines).toContain('pawl_queue_latency_seconds_bucket{queue="q",le="0.5"} 2')
    expect(lines).toContain('pawl_queue_latency_seconds_bucket{queue="q",le="+Inf"} 3')
    expect(lines).toContain('pawl_queue_latency_seconds_count{queue="q"} 3')
    for (const name of Object.keys(METRICS)) {
      expect(lines.filter((line) => line.startsWith(`# TYPE ${name} `))).toHaveLength(1)
    }
  })

  it('stop at a bound of series, and say how much was dropped', () => {
    const metrics = new PrometheusMetrics()
    for (let i = 0; i < 10_050; i++) {
      metrics.count('pawl_leases_expired_total', { queue: `q${i}` })
    }
    expect(metrics.text()).toContain('pawl_metrics_dropped_total 50\n')
  })
})

describe('options of the API', () => {
  it.each([
    [{ bodyBytesMax: 0 }, /bodyBytesMax/],
    [{ basePath: 'pawl' }, /basePath/],
    [{ basePath: '/a/../b' }, /basePath/],
    [{ hosts: 'a' }, /hosts/],
    [{ types: 'some' }, /types/],
    [{ tokens: true }, /"tokens" is not known/],
  ])('%j are refused', async (options, why) => {
    await using pawl = await createPawl({ store: 'sqlite::memory:' })
    const open = () => createHttpApi({ pawl, ...options } as unknown as HttpApiOptions)
    expect(open).toThrow(why)
  })
})
