/**
 * `docs/reference/run-state-graph.md` and `docs/reference/run-events.md`: the machine of runs, and
 * the formats of its events and its snapshot, from the code and the schemas that own them.
 */
import { readFileSync } from 'node:fs'
import { toMarkdown, toMermaid } from 'pawl/rules'
import { documentationRun } from 'pawl/runs'

const GENERATED = [
  '`npm run docs:generate` writes this page; `npm test` fails while it is old.',
  '',
]

/** The state graph of runs. */
export function runStateGraphDocument(): string {
  const { machine, failed, cancelled, fixLoop } = documentationRun
  const states = [...machine.states].map(([state, { meaning, stable, transitional, terminal }]) => {
    const kind =
      (stable && 'stable') || (transitional && 'transitional') || (terminal && 'terminal')
    return `| \`${state}\` | ${kind || ''} | ${meaning} |`
  })
  return [
    '# State graph of runs',
    '',
    'The states of a documentation run, the edges between them, and what each kind of state means',
    'for resuming. It is generated from `src/core/run/machine.ts`. A machine of your own',
    '(`defineRunMachine`) follows the same rules.',
    ...GENERATED,
    '```mermaid',
    toMermaid(machine).trimEnd(),
    '```',
    '',
    '## States',
    '',
    '| state | kind | meaning |',
    '|---|---|---|',
    ...states,
    '',
    '- A run that is resumed in a **transitional** state goes back to the last **stable** state',
    '  that its log visited, and records RESUME_REWIND.',
    '- In every other state that is not terminal it continues in place, unless an input changed.',
    '- A **terminal** state is left by nothing.',
    '',
    '## Guards',
    '',
    '| edge | holds if | otherwise |',
    '|---|---|---|',
    `| ${fixLoop?.validating} → ${fixLoop?.passed} | the last validation was ok | refused |`,
    `| ${fixLoop?.validating} → ${fixLoop?.fixing} | the last validation was not ok | refused |`,
    `| ${fixLoop?.validating} → ${fixLoop?.fixing} | fix attempts are left | it fails: ${failed} |`,
    '',
    `Every state that is not terminal has an edge to ${failed} and one to ${cancelled}.`,
    '',
    '## Edges',
    '',
    toMarkdown(machine),
  ].join('\n')
}

interface Schema {
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly $ref?: string
  readonly anyOf?: readonly Schema[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly $defs?: Readonly<Record<string, Schema>>
}

/** The events and the snapshot of runs. */
export function runEventsDocument(): string {
  const [event, snapshot] = [read('event'), read('snapshot')]
  const types = (event.properties?.type?.enum ?? []) as string[]
  return [
    '# Events and snapshot of runs',
    '',
    'What a line of `events.ndjson` and what `snapshot.json` hold. It is generated from',
    '`specs/schemas/event.schema.json` and `specs/schemas/snapshot.schema.json`, which are the',
    'authority. Both are checked whenever something is written or read.',
    ...GENERATED,
    '## Fields of every event',
    '',
    ...fields(event, Object.keys(event.properties ?? {})),
    '## Types of events, and their data',
    '',
    ...types.flatMap((type) => [`### ${type}`, '', ...fields(event.$defs?.[type] ?? {})]),
    '## Fields of the snapshot',
    '',
    ...fields(snapshot),
  ].join('\n')
}

function read(name: string): Schema {
  return JSON.parse(readFileSync(`specs/schemas/${name}.schema.json`, 'utf8')) as Schema
}

function fields(schema: Schema, names = Object.keys(schema.properties ?? {})): string[] {
  const rows = names.map((name) => {
    const own = schema.properties?.[name] ?? {}
    const isRequired = schema.required?.includes(name) ? 'always' : 'optional'
    const about = own.description ?? ''
    return `| \`${name}\` | ${isRequired} | ${textOf(own)} | ${about.replaceAll('|', '\\|')} |`
  })
  return ['| field | there | what | |', '|---|---|---|---|', ...rows, '']
}

function textOf(schema: Schema): string {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${value}\``).join(', ')
  if (schema.$ref !== undefined) return (schema.$ref.split('/').pop() as string).toString()
  if (schema.anyOf !== undefined) return schema.anyOf.map(textOf).join(' or ')
  return [schema.type ?? 'object'].flat().join(' or ')
}
