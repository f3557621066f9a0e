/** `pawl machine migrate`: migrates live jobs to a later version of their lifecycle. */
import type { MigrationReport } from '../../engine/operators/migrate.ts'
import { confirm } from '../confirm.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode, exitCodeOf } from '../exit-codes.ts'
import { loadJobFiles } from '../job-files.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag, wholeOf } from '../spec.ts'
import { visible } from '../visible.ts'
import { identityOf, OPERATOR_OPTIONS } from './job-act.ts'

async function migrate(call: Call): Promise<ExitCode> {
  const [lifecycle = ''] = call.args
  const to = wholeOf(call, 'to', 1)
  if (to === undefined) throw new UsageInvalid('The target version is missing', 'Add it: --to 2.')
  const identity = identityOf(call)
  const isDry = hasFlag(call, 'dryRun')
  const jobs = call.options.jobs === undefined ? [] : await loadJobFiles(call.settings.jobs.value)
  const selection = { lifecycle, to }
  return withPawl(
    call,
    async (pawl) => {
      const operator = pawl.operator(identity)
      const signal = call.interrupted
      const preview = await operator.migrate(selection, { dryRun: true, signal })
      if (isDry || preview.done === 0) return report(call, { ...preview, dryRun: isDry })
      call.output.say(`migrate would change: ${countsOf(preview)}`)
      await confirm(call, 'migrate', preview.done)
      return report(call, await operator.migrate(selection, { signal }))
    },
    { jobs },
  )
}

function countsOf({ matched, done, running, refused }: MigrationReport): string {
  const counts = Object.entries({ matched, done, running, refused })
  const shown = counts.filter(([name, count]) => name === 'matched' || count > 0)
  return shown.map(([name, count]) => `${count} ${name}`).join(', ')
}

function report({ output, interrupted }: Call, result: MigrationReport): ExitCode {
  if (output.json) output.record({ verb: 'migrate', ...result })
  else {
    const dry = result.dryRun ? ' (dry run, nothing was written)' : ''
    output.line(`migrate: ${countsOf(result)}${dry}`)
    for (const { from, to, jobs } of result.moves) {
      const way = `v${from.version} ${from.state} → v${to.version} ${to.state}`
      output.line(`  ${visible(way)}: ${jobs}`)
    }
    for (const { id, code, message, hint } of result.refusals) {
      output.line(`  ${visible(id)} refused: ${visible(message)} (${code}). ${visible(hint)}`)
    }
    if (result.running > 0) {
      output.say('Running jobs finish their attempt first. Run the command again for them.')
    }
  }
  if (interrupted.aborted) return EXIT.interrupted
  const [first] = result.refusals
  return first === undefined ? EXIT.ok : exitCodeOf(first)
}

export const migrateCommand: CommandSpec = {
  name: 'machine migrate',
  summary: 'Migrate live jobs of earlier versions to a version of their lifecycle',
  details:
    'The store has all versions that were ever registered, with their mappings. So job files are ' +
    'needed only if no process with the new version has opened the store yet. Running jobs ' +
    'finish their attempt under their version. Each migration is a fact with operator and reason.',
  args: [{ flags: '<name>', says: 'the name of the lifecycle' }],
  options: [
    { flags: '--to <version>', says: 'the target version (required)' },
    ...OPERATOR_OPTIONS,
    { flags: '--dry-run', says: 'print what would change, and change nothing' },
    { flags: '--yes', says: 'do not ask for confirmation' },
    { flags: '--jobs <file>', says: 'a job file with its own lifecycles', repeats: true },
  ],
  examples: [
    ['pawl machine migrate parcel --to 2 --dry-run --reason "release 12"', 'what would change'],
    ['pawl machine migrate parcel --to 2 --yes --reason "release 12"', 'without confirmation'],
  ],
  run: migrate,
}
