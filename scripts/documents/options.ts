/**
 * The page of all options, from the declarations in `dist`: what each is, its type and its default,
 * which its comment names with `@defaultValue`.
 */
import type { ApiEntry, ApiMember } from './api-model.ts'

/** The functions that take options, in the order of the page. */
const PAGES: readonly (readonly [title: string, entry: string, type: string])[] = [
  ['`createPawl(options)`', 'pawl', 'PawlOptions'],
  ['`defineJob(options)`', 'pawl', 'JobOptions'],
  ['`retry` in `defineJob`', 'pawl', 'RetrySettings'],
  ['`pawl.enqueue(job, input, options)`', 'pawl', 'EnqueueOptions'],
  ['`pawl.flow(build, options)`', 'pawl', 'FlowOptions'],
  ['`f.add(job, input, options)` of a job with `after`', 'pawl', 'DependentOptions'],
  ['`pawl.batch(job, inputs, options)`', 'pawl', 'BatchOptions'],
  ['`invokeMany(name, job, inputs, options)`', 'pawl', 'InvokeManyOptions'],
  ['`pawl.work(options)`', 'pawl', 'WorkOptions'],
  ['`queues` in `createPawl`', 'pawl', 'QueueOptions'],
  ['`defineConfig(config)`', 'pawl/config', 'PawlConfig'],
  ['`work` in `defineConfig`', 'pawl/config', 'WorkConfig'],
  ['`serve` in `defineConfig`', 'pawl/config', 'ServeConfig'],
  ['`retention` in `createPawl` and `defineConfig`', 'pawl', 'RetentionOptions'],
  ['`openSqliteStore(options)`', 'pawl/sqlite', 'SqliteOptions'],
  ['`openPostgresStore(options)`', 'pawl/postgres', 'PostgresOptions'],
  ['`openRuns(options)`', 'pawl/runs', 'RunsOptions'],
  ['`defineRun(options)`', 'pawl/runs', 'RunOptions'],
  ['`doctor.check(options)`', 'pawl/doctor', 'CheckOptions'],
  ['`createTestPawl(options)`', 'pawl/testing', 'TestPawlOptions'],
]

/** Markdown with a table for each function. */
export function optionsDocument(entries: readonly ApiEntry[]): string {
  return [
    '# Options and defaults',
    '',
    'Generated from the declarations of the package. Unknown options are refused. Durations are',
    "numbers of milliseconds or texts such as `'30s'`, `'5m'` and `'2h'`.",
    ...PAGES.flatMap(([title, entry, type]) => [
      '',
      `## ${title}`,
      '',
      ...tableOf(entries, entry, type),
    ]),
    '',
  ].join('\n')
}

function tableOf(entries: readonly ApiEntry[], entry: string, type: string): string[] {
  const exports = entries.find(({ name }) => name === entry)?.exports
  const found = exports?.find(({ name }) => name === type)
  if (found === undefined) throw new Error(`${entry} does not export ${type}`)
  return [
    `\`${type}\` of \`${entry}\`.`,
    '',
    '| option | type | default | meaning |',
    '|---|---|---|---|',
    ...found.members.map((member) => rowOf(type, member)),
  ]
}

function rowOf(type: string, { name, text, isOptional, says, defaultValue }: ApiMember): string {
  if (says === '') throw new Error(`${type}.${name} has no comment, which the options page shows`)
  if (isOptional && defaultValue === undefined) {
    throw new Error(`The comment of ${type}.${name} has no @defaultValue`)
  }
  const cells = [`\`${name}\``, `\`${text}\``, isOptional ? defaultValue : 'required', says]
  return `| ${cells.map((cell) => cell?.replaceAll('|', '\\|')).join(' | ')} |`
}
