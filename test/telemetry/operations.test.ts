// The dashboard, the alert rules and the page on monitoring name metrics and labels that exist, and
// the text of all metrics is read by a strict reader.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createPawl, defineJob, type Pawl } from 'pawl'
import { serveHttp } from 'pawl/http'
import { METRICS, PrometheusMetrics, STORE_METRICS, storeMetricsText } from 'pawl/telemetry'
import { describe, expect, it, onTestFinished } from 'vitest'
import { PLACES } from '../engine/processes/places.ts'
import { freshFolder } from '../processes/folder.ts'
import { readPrometheus } from './prometheus-text.ts'

const timeout = 30_000

interface Described {
  readonly kind: string
  readonly labels: readonly string[]
  readonly help: string
}

const DROPPED = { kind: 'counter', labels: [], help: '' }
const ALL = new Map<string, Described>([
  ...Object.entries<Described>(METRICS),
  ...Object.entries<Described>(STORE_METRICS),
  ['pawl_metrics_dropped_total', DROPPED],
])

/** Returns the definition of a name in a query; buckets, sums and counts belong to a histogram. */
function metricOf(name: string): Described | undefined {
  const whole = ALL.get(name.replace(/_(bucket|sum|count)$/, ''))
  return ALL.get(name) ?? (whole?.kind === 'histogram' ? whole : undefined)
}

/** What a query names that does not exist. */
function faultsIn(expr: string): string[] {
  const faults: string[] = []
  const labels = new Set(['le', 'instance'])
  for (const [, name = '', matchers = ''] of expr.matchAll(/(pawl_[a-z_]+)(?:\{([^}]*)\})?/g)) {
    const metric = metricOf(name)
    if (metric === undefined) faults.push(name)
    for (const label of metric?.labels ?? []) labels.add(label)
    for (const [, label = ''] of matchers.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)) {
      if (metric?.labels.includes(label) !== true) faults.push(`${name}{${label}}`)
    }
    if (metric?.kind === 'counter' && !isInRate(expr, name)) faults.push(`${name} without a rate`)
  }
  for (const [, list = ''] of expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)) {
    for (const label of list.split(',').map((one) => one.trim())) {
      if (!labels.has(label)) faults.push(`by ${label}`)
    }
  }
  return faults
}

function isInRate(expr: string, name: string): boolean {
  return new RegExp(`(rate|increase)\\(${name}`).test(expr)
}

/** The names that a text in braces refers to: legends and annotations. */
function referred(text: string): string[] {
  return Array.from(
    text.matchAll(/\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}/g),
    ([, name = '']) => name,
  )
}

interface Panel {
  readonly title: string
  readonly type: string
  readonly description?: string
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

const RULES = readFileSync('docs/operations/alerts.yml', 'utf8')
const PAGE = readFileSync('docs/operations/monitoring.md', 'utf8')

/** The alerts of the file, which has one form: `key: value`, or `key: >-` and indented lines. */
function alerts() {
  return RULES.split(/^ {6}- alert: /m)
    .slice(1)
    .map((text) => {
      const [, folded = ''] = /^ {8}expr: >-\n((?: {10}.*\n)+)/m.exec(text) ?? []
      const [, plain = ''] = /^ {8}expr: (?!>-)(.*)$/m.exec(text) ?? []
      const expr = (folded || plain).replaceAll(/\s+/g, ' ').trim()
      return { name: text.split('\n', 1)[0] as string, expr, text }
    })
}

describe('the dashboard', () => {
  const dashboard = JSON.parse(readFileSync('docs/operations/grafana-dashboard.json', 'utf8'))
  const panels = (dashboard.panels as Panel[]).filter(({ type }) => type !== 'row')

  it('shows metrics and labels that exist, each panel with its meaning', () => {
    expect(panels.length).toBeGreaterThan(15)
    for (const { title, description, targets = [] } of panels) {
      expect(description, title).toMatch(/\.$/)
      expect(targets.length, title).toBeGreaterThan(0)
      for (const { expr, legendFormat } of targets) {
        expect(faultsIn(expr), title).toEqual([])
        for (const label of referred(legendFormat)) expect(expr, title).toContain(label)
      }
    }
  })

  it('takes values of the store from one process: never as a sum over processes', () => {
    const exprs = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    for (const name of Object.keys(STORE_METRICS)) {
      const sums = exprs.filter((expr) =>
        new RegExp(`^sum[^(]*\\([^)]*\\)? ?\\(?${name}`).test(expr),
      )
      expect(sums).toEqual([])
    }
  })
})

describe('the alert rules', () => {
  it('ask for metrics and labels that exist, and say what to do', () => {
    expect(alerts().length).toBeGreaterThan(12)
    for (const { name, expr, text } of alerts()) {
      expect(faultsIn(expr), name).toEqual([])
      expect(expr, name).toMatch(/pawl_.*(>|==)/)
      expect(text, name).toMatch(/severity: (warning|critical)\n/)
      expect(text, name).toMatch(/summary: .+\.\n/)
      expect(text, name).toMatch(/action: .+\.\n/)
      for (const label of referred(text))
        expect(expr, name).toMatch(new RegExp(`by \\([^)]*${label}`))
    }
  })

  it('are all explained on the page', () => {
    for (const { name } of alerts()) expect(PAGE).toContain(`\`${name}\``)
  })
})

it('the check of queries finds what does not exist', () => {
  expect(faultsIn('sum by (queue) (rate(pawl_leases_expired_total[5m]))')).toEqual([])
  expect(faultsIn('pawl_jobs{lane="ready"}')).toEqual([])
  expect(faultsIn('pawl_nothing')).toEqual(['pawl_nothing'])
  expect(faultsIn('pawl_jobs{state="ready"}')).toEqual(['pawl_jobs{state}'])
  expect(faultsIn('max by (kind) (pawl_jobs)')).toEqual(['by kind'])
  expect(faultsIn('pawl_leases_expired_total > 1')).toHaveLength(1)
  expect(faultsIn('pawl_jobs_bucket')).toEqual(['pawl_jobs_bucket'])
})

it('the page on monitoring lists every metric with its labels and meaning', () => {
  const rows = [...Object.entries<Described>(METRICS), ...Object.entries<Described>(STORE_METRICS)]
  const lines = rows.map(([name, { kind, labels, help }]) => {
    return `| \`${name}\` | ${kind} | ${labels.join(', ')} | ${help.replaceAll('|', '\\|')} |`
  })
  expect(lines.filter((line) => !PAGE.includes(`${line}\n`))).toEqual([])
})

interface Busy {
  readonly pawl: Pawl
  readonly metrics: PrometheusMetrics
  readonly text: () => Promise<string>
}

async function busyPawl(store: string): Promise<Busy> {
  const metrics = new PrometheusMetrics()
  const name = 'a "quoted" \\name\\ with 漢字'
  const job = defineJob({
    name,
    queue: 'q"\\',
    retry: { max: 0 },
    run: async ({ input }) => {
      if (input === 2) throw new Error('no')
    },
  })
  const pawl = await createPawl({ store, jobs: [job], metrics })
  onTestFinished(() => pawl.close())
  const handles = await pawl.enqueueMany(job, [{ input: 1 }, { input: 2 }])
  const worker = await pawl.work({ poll: 10 })
  await Promise.allSettled(handles.map((handle) => handle.result()))
  await worker.stop()
  return { pawl, metrics, text: async () => metrics.text() + (await storeMetricsText(pawl)) }
}

describe.each(PLACES)('the text of all metrics on $name', ({ place }) => {
  it('keeps to the grammar, and has every metric with its labels', { timeout }, async () => {
    const { store } = await place()
    const { text } = await busyPawl(store)
    const read = readPrometheus(await text())
    expect([...read.keys()].sort()).toEqual([...ALL.keys()].sort())
    for (const [name, { kind, labels }] of read) {
      expect(kind, name).toBe(ALL.get(name)?.kind)
      if (labels.size > 0) expect([...labels], name).toEqual(ALL.get(name)?.labels)
    }
    const ended = read.get('pawl_executions_total')?.samples
    expect([...(ended?.values() ?? [])]).toEqual([1, 1])
    for (const name of ['pawl_store_operation_duration_seconds', 'pawl_queue_latency_seconds']) {
      expect(read.get(name)?.samples.size, name).toBeGreaterThan(0)
    }
  })
})

describe('the strict reader', () => {
  const head = '# HELP a_total Text.\n# TYPE a_total counter\n'
  it.each([
    ['a_total 1', /end/],
    [`${head}a_total 1\na_total 1\n`, /twice/],
    [`${head}b_total 1\n`, /among/],
    [`${head}a_total{x="a"b"} 1\n`, /No sample/],
    [`${head}a_total{x="a",x="b"} 1\n`, /twice/],
    [`${head}a_total one\n`, /No sample/],
    [`${head}a_total -1\n`, /negative/],
    [`${head}\n`, /No sample/],
    ['# TYPE a_total counter\n', /no help/],
    ['# HELP a Text.\n# TYPE a counter\n', /_total/],
    ['# HELP h T.\n# TYPE h histogram\nh_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\n', /grow/],
    ['# HELP h T.\n# TYPE h histogram\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 2\n', /whole/],
  ])('refuses %j', (text, why) => {
    expect(() => readPrometheus(text)).toThrow(why)
  })
})

const hasPromtool = spawnSync('promtool', ['--version']).status === 0
const PARSER = 'from prometheus_client.parser import text_string_to_metric_families'
const hasPython = spawnSync('python3', ['-c', PARSER]).status === 0
if (!hasPromtool) console.warn('SKIPPED: promtool is not installed (Debian: prometheus)')
if (!hasPython) console.warn('SKIPPED: python3-prometheus-client is not installed')

it.runIf(hasPromtool)('promtool accepts the alert rules and a scrape', { timeout }, async () => {
  const rules = spawnSync('promtool', ['check', 'rules', 'docs/operations/alerts.yml'])
  expect(rules.stderr.toString() + rules.stdout.toString()).toContain('SUCCESS')
  const { pawl, metrics } = await busyPawl('sqlite::memory:')
  const server = await serveHttp({ pawl, metrics, port: 0 })
  onTestFinished(() => server.close())
  const scraped = await (await fetch(`${server.url}/metrics`)).text()
  expect(scraped).toContain('pawl_executions_total{')
  expect(scraped).toContain('pawl_workers{')
  const checked = spawnSync('promtool', ['check', 'metrics'], { input: scraped })
  expect([checked.stderr.toString(), checked.status]).toEqual(['', 0])
})

it.runIf(hasPython)("Python's parser reads the text", { timeout }, async () => {
  const { text } = await busyPawl('sqlite::memory:')
  const file = join(freshFolder(), 'metrics.txt')
  writeFileSync(file, await text())
  const program = `${PARSER}
import sys
names = [f.name for f in text_string_to_metric_families(open(sys.argv[1]).read())]
print(len(names))`
  const { stdout, stderr } = spawnSync('python3', ['-c', program, file])
  expect(stderr.toString()).toBe('')
  expect(Number(stdout.toString())).toBe(ALL.size)
})
