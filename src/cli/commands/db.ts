/** `pawl db migrate|status|print-sql`: the schema of the store. */

import { withoutSecrets } from '../../core/redact.ts'
import { storeSql, storeStatus } from '../../engine/open-store.ts'
import { stamp } from '../../environment/times.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { withPawl } from '../opening.ts'
import { explainSettings } from '../settings-text.ts'
import type { Call, CommandSpec } from '../spec.ts'
import { visible } from '../visible.ts'

async function migrate(call: Call): Promise<undefined> {
  const { settings, environment, output } = call
  const store = settings.store.value
  const { pending } = await storeStatus(store, environment)
  await withPawl(call, async () => {}, { create: true })
  const shown = withoutSecrets(store)
  if (output.json) output.record({ store: shown, applied: pending })
  else if (pending.length === 0) output.line(`${visible(shown)} is up to date`)
  else output.line(`${visible(shown)}: applied ${pending.join(', ')}`)
  return undefined
}

async function status(call: Call): Promise<ExitCode> {
  const { settings, environment, output } = call
  const store = settings.store.value
  explainSettings(call, { store: settings.store })
  const { applied, pending } = await storeStatus(store, environment)
  const shown = withoutSecrets(store)
  if (output.json) output.record({ store: shown, applied, pending })
  else {
    const done = applied.map(({ number, appliedAt }) => [String(number), stamp(appliedAt)])
    const open = pending.map((number) => [String(number), 'pending'])
    output.table([{ head: 'migration', right: true }, { head: 'applied' }], [...done, ...open])
    if (applied.length === 0) output.say(`There is no store at ${visible(shown)} yet.`)
  }
  return pending.length > 0 ? EXIT.findings : EXIT.ok
}

async function printSql({ settings, output }: Call): Promise<undefined> {
  const sql = await storeSql(settings.store.value)
  if (output.json) output.record({ sql })
  else output.line(sql.trimEnd())
  return undefined
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'db migrate',
    summary: 'Create the store, or migrate its schema to this release',
    examples: [
      ['pawl db migrate --store sqlite:./jobs.db', 'a SQLite file'],
      ['PAWL_STORE=postgres://localhost/app pawl db migrate', 'a schema on PostgreSQL'],
    ],
    run: migrate,
  },
  {
    name: 'db status',
    summary: 'Show which migrations are applied, and which are pending',
    details: 'Changes nothing. The exit code is 3 if migrations are pending.',
    examples: [['pawl db status', 'the configured store']],
    run: status,
  },
  {
    name: 'db print-sql',
    summary: 'Print the SQL of the schema, to apply it with your own tools',
    examples: [['pawl db print-sql --store postgres://localhost/app > pawl.sql', 'for a review']],
    run: printSql,
  },
]
