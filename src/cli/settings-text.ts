/** Prints settings and where each comes from, for --verbose. */
import { withoutSecrets } from '../core/redact.ts'
import type { Setting } from './settings.ts'
import type { Call } from './spec.ts'
import { dashed } from './spec.ts'
import { visible } from './visible.ts'

/** Prints the settings that a command uses. Secrets must not be passed to it. */
export function explainSettings(
  { output }: Pick<Call, 'output'>,
  settings: Readonly<Record<string, Setting<unknown>>>,
): void {
  for (const [name, { value, from }] of Object.entries(settings)) {
    output.explain(`${dashed(name)}: ${textOf(value)} (from ${visible(from)})`)
  }
}

function textOf(value: unknown): string {
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return 'not set'
  if (Array.isArray(value)) return value.map(textOf).join(', ')
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return visible(withoutSecrets(text))
}
