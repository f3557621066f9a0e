/** `pawl doctor`: looks at the store, says what is wrong, and mends it when asked to. */
import { existsSync } from 'node:fs'
import type { RunRecords } from '../../doctor/checks/runs-are-whole.ts'
import type { Doctor, Report } from '../../doctor/doctor.ts'
import type { Pawl } from '../../engine/pawl.ts'
import { openFolderJournal } from '../../runs/journal/folder/journal.ts'
import { recordsOf } from '../../runs/journal/records.ts'
import { openStoreJournal } from '../../runs/journal/store/journal.ts'
import { printFindings, printRepairs, printVerdict } from '../diagnosis.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { loadJobFiles } from '../job-files.ts'
import { withPawl } from '../opening.ts'
import { FOLDER_OPTION } from '../run-files.ts'
import { type Call, type CommandSpec, hasFlag, textOf, textsOf } from '../spec.ts'
import { readDuration } from '../times.ts'
import { visible } from '../visible.ts'
import { identityOf, OPERATOR_OPTIONS } from './job-act.ts'

async function examine(call: Call): Promise<ExitCode> {
  const isApplied = hasFlag(call, 'apply')
  const isPlan = hasFlag(call, 'plan')
  if (isApplied && isPlan) throw new UsageInvalid('It is a plan or a repair: --plan or --apply')
  const identity = isApplied ? identityOf(call) : undefined
  const jobs = textsOf(call, 'jobs').length > 0 ? await loadJobFiles(call.settings.jobs.value) : []
  return withPawl(
    call,
    async (pawl) => {
      const doctor = pawl.doctor({ runs: await runsOf(call, pawl), ...patienceOf(call) })
      const full = isPlan || hasFlag(call, 'full')
      if (identity === undefined) return tell(call, await look(call, doctor, full), isPlan)
      const { name: operator, reason } = identity
      const { interrupted: signal } = call
      const repaired = await doctor.repair({ operator, reason, signal, ...progressOf(call) })
      const after = await look(call, doctor, true)
      if (call.output.json) call.output.record({ repaired, after })
      else {
        printRepairs(call.output, repaired, 'done')
        printFindings(call.output, after)
        printVerdict(call.output, after)
      }
      return after.ok ? EXIT.ok : EXIT.findings
    },
    { jobs, onFindings: 'warn' },
  )
}

function look(call: Call, doctor: Doctor, full: boolean): Promise<Report> {
  return doctor.check({ full, signal: call.interrupted, ...progressOf(call) })
}

function tell({ output }: Call, report: Report, isPlan: boolean): ExitCode {
  if (output.json) output.record(report)
  else {
    printFindings(output, report)
    if (isPlan) printRepairs(output, report, 'planned')
    printVerdict(output, report)
  }
  return report.ok ? EXIT.ok : EXIT.findings
}

/** Those in the store, and those in the folder where there is one. */
async function runsOf(call: Call, { store }: Pawl): Promise<RunRecords[]> {
  const [trace_id, span_id] = [call.environment.ids.next(), call.environment.ids.next()]
  const author = { actor: 'doctor', trace_id, span_id }
  const { value: folder } = call.settings.runFolder
  const inStore = recordsOf(openStoreJournal({ store }), 'the store', author)
  if (!existsSync(folder)) return [inStore]
  const journal = await openFolderJournal({ path: folder })
  return [inStore, recordsOf(journal, visible(folder), author)]
}

function patienceOf(call: Call) {
  const after = textOf(call, 'stalledAfter')
  return after === undefined
    ? {}
    : { patience: { stalledMs: readDuration(after, '--stalled-after') } }
}

const TELL_EVERY = 50_000

function progressOf({ output }: Call) {
  let told = 0
  return {
    onProgress: (jobs: number) => {
      if (jobs - told < TELL_EVERY) return
      told = jobs
      output.say(`${jobs} jobs …`)
    },
  }
}

/** The doctor. */
export const commands: readonly CommandSpec[] = [
  {
    name: 'doctor',
    summary: 'Check the store against every promise, and mend it when asked to',
    details:
      'Without --full jobs are looked at for two seconds. --plan checks everything and shows ' +
      'what a repair would change; --apply does it, one transaction for each job, and leaves a ' +
      'fact with the operator and the reason. Safe while workers run. Ends with exit code 3 on ' +
      'findings.',
    options: [
      { flags: '--full', says: 'look at every job, and at the file itself' },
      { flags: '--plan', says: 'show what a repair would change; changes nothing' },
      { flags: '--apply', says: 'repair' },
      ...OPERATOR_OPTIONS,
      { flags: '--jobs <file>', says: 'a file of jobs with own lifecycles', repeats: true },
      { flags: '--stalled-after <duration>', says: 'tell of attempts that run longer (10m)' },
      FOLDER_OPTION,
    ],
    examples: [
      ['pawl doctor', 'a quick look'],
      ['pawl doctor --full --json', 'everything, for a script'],
      ['pawl doctor --plan', 'what a repair would change'],
      ['pawl doctor --apply --operator ann --reason "INC-7: disk"', 'repair'],
    ],
    run: examine,
  },
]
