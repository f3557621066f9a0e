// A strict reader of the text format of Prometheus, version 0.0.4. It accepts what the format
// allows and nothing else, and checks what a line alone cannot show: each metric is announced once,
// before its samples; series are unique; buckets grow and end with +Inf, which equals the count.

export interface Read {
  readonly kind: string
  readonly help: string
  readonly samples: Map<string, number>
  /** The names of labels that occur. */
  readonly labels: Set<string>
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = String.raw`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"`
const HELP = new RegExp(String.raw`^# HELP (${NAME}) ((?:[^\\\n]|\\\\|\\n)*)$`)
const TYPE = new RegExp(`^# TYPE (${NAME}) (counter|gauge|histogram|summary|untyped)$`)
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)\\})? ([^ ]+)$`)
const NUMBER = /^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?Inf|NaN)$/

/** Reads a text; throws at the first fault. */
export function readPrometheus(text: string): Map<string, Read> {
  if (!text.endsWith('\n')) throw new Error('The last line has no end')
  const metrics = new Map<string, Read>()
  let help: readonly [name: string, text: string] | undefined
  let current = ''
  for (const line of text.slice(0, -1).split('\n')) {
    const helped = HELP.exec(line)
    const typed = TYPE.exec(line)
    if (helped !== null) {
      help = [helped[1] as string, helped[2] as string]
    } else if (typed !== null) {
      const [, name, kind] = typed as unknown as [string, string, string]
      if (help?.[0] !== name) throw new Error(`${name} has no help`)
      if (metrics.has(name)) throw new Error(`${name} is announced twice`)
      metrics.set(name, { kind, help: help[1], samples: new Map(), labels: new Set() })
      current = name
    } else readSample(line, current, metrics.get(current))
  }
  for (const [name, metric] of metrics) checkMetric(name, metric)
  return metrics
}

function readSample(line: string, current: string, metric: Read | undefined): void {
  const [, name = '', labels = '', value = ''] = SAMPLE.exec(line)?.filter(isOuter) ?? []
  if (metric === undefined || !NUMBER.test(value)) throw new Error(`No sample: ${line}`)
  const suffix = name.slice(current.length)
  const suffixes = metric.kind === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
  if (!name.startsWith(current) || !suffixes.includes(suffix)) {
    throw new Error(`${name} stands among the samples of ${current}`)
  }
  const names = Array.from(labels.matchAll(new RegExp(LABEL, 'g')), ([, label]) => label as string)
  if (new Set(names).size < names.length) throw new Error(`A label occurs twice: ${line}`)
  for (const label of names) if (label !== 'le') metric.labels.add(label)
  const key = `${suffix}{${labels}}`
  if (metric.samples.has(key)) throw new Error(`A series occurs twice: ${line}`)
  metric.samples.set(key, value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value))
}

/** Of all groups only the line, the name, the labels and the value. */
function isOuter(_: string, i: number, all: readonly string[]): boolean {
  return i < 3 || i === all.length - 1
}

function checkMetric(name: string, { kind, samples }: Read): void {
  if (kind === 'counter' && !name.endsWith('_total')) throw new Error(`${name} has no _total`)
  for (const value of samples.values()) {
    if (kind === 'counter' && !(value >= 0)) throw new Error(`${name} is negative`)
  }
  if (kind !== 'histogram') return
  const series = new Map<string, [bound: number, count: number][]>()
  for (const [key, count] of samples) {
    if (!key.startsWith('_bucket')) continue
    const [whole, bound = ''] = /,?le="([^"]*)"\}$/.exec(key) ?? []
    if (whole === undefined) throw new Error(`${name} has a bucket without le`)
    const own = key.slice('_bucket'.length, -whole.length)
    const buckets = series.get(own) ?? []
    buckets.push([bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound), count])
    series.set(own, buckets)
  }
  for (const [own, buckets] of series) {
    for (const [i, [bound, count]] of buckets.entries()) {
      const [lower, below] = buckets[i - 1] ?? [Number.NEGATIVE_INFINITY, 0]
      if (bound <= lower || count < below) throw new Error(`${name}: buckets do not grow`)
    }
    const [last, total] = buckets.at(-1) ?? [0, 0]
    const rest = own === '{' ? '{}' : `${own}}`
    const isWhole = last === Number.POSITIVE_INFINITY && samples.get(`_count${rest}`) === total
    if (!isWhole || !samples.has(`_sum${rest}`)) throw new Error(`${name}: ${rest} is not whole`)
  }
}
