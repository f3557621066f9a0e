/** What is wrong with the admission of a job to enqueue. */
import {
  type Admission,
  type DebounceRule,
  PERIOD_MAX_MS,
  RATE_MAX,
  type RateRule,
  SINGLETON_MODES,
} from '../../core/admission.ts'
import { count, name, oneOf, record } from '../../core/checks.ts'

const KNOWN = ['rate', 'debounce', 'singleton']

/** Returns what is wrong, or `undefined`. */
export function findAdmissionFault(admission: Admission): string | undefined {
  const why = record(admission)
  if (why !== undefined) return why
  const unknown = Object.keys(admission).find((field) => !KNOWN.includes(field))
  if (unknown !== undefined) return `must not have the field ${unknown}`
  const { rate, debounce, singleton } = admission
  if (debounce !== undefined && singleton !== undefined) {
    return 'must not have debounce and singleton together'
  }
  return (
    (rate && (keyFault(rate) ?? rateFault(rate))) ??
    (debounce && (keyFault(debounce) ?? debounceFault(debounce))) ??
    (singleton && (keyFault(singleton) ?? oneOf(singleton.mode, SINGLETON_MODES)))
  )
}

function keyFault(rule: { readonly key: string }): string | undefined {
  return record(rule) ?? name(rule.key)
}

function rateFault({ limit, periodMs }: RateRule): string | undefined {
  return count(limit, 1, RATE_MAX) ?? count(periodMs, 1, PERIOD_MAX_MS)
}

function debounceFault({ periodMs, timeoutMs }: DebounceRule): string | undefined {
  return count(periodMs, 1, PERIOD_MAX_MS) ?? count(timeoutMs, periodMs, PERIOD_MAX_MS)
}
