/** `pawl doctor`: checks the store, and repairs it with --apply. */
import { existsSync } from 'node:fs'
import type { RunRecords } from '../../doctor/checks/runs-are-whole.ts'
import type { Doctor, Report } from '../../doctor/doctor.ts'
import type { Pawl } from '../../engine/pawl.ts'
import { openFolderJournal } from '../../runs/journal/folder/journal.ts'
import { openStoreJournal } from '../../runs/journal/store/journal.ts'
import { recordsOf } from '../../runs/journal/verify.ts'
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
  if (isApplied && isPlan)
    throw new UsageInvalid('--plan and --apply cannot be used together', 'Remove one of them.')
  const identity = isApplied ? identityOf(call) : undefined
  const jobs = textsOf(call, 'jobs').length > 0 ? await loadJobFiles(call.settings.jobs.value) : []
  return withPawl(
    call,
    async (pawl) => {
      const doctor = pawl.doctor({ runs: await runsOf(call, pawl), ...thresholdsOf(call) })
      const full = isPlan || hasFlag(call, 'full')
      if (identity === undefined) return report(call, await check(call, doctor, full), isPlan)
      const { name: operator, reason } = identity
      const { interrupted: signal } = call
      const repaired = await doctor.repair({ operator, reason, signal, ...progressOf(call) })
      const after = await check(call, doctor, true)
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

function check(call: Call, doctor: Doctor, full: boolean): Promise<Report> {
  return doctor.check({ full, signal: call.interrupted, ...progressOf(call) })
}

function report({ output }: Call, found: Report, isPlan: boolean): ExitCode {
  if (output.json) output.record(found)
  else {
    printFindings(output, found)
    if (isPlan) printRepairs(output, found, 'planned')
    printVerdict(output, found)
  }
  return found.ok ? EXIT.ok : EXIT.findings
}

/** The runs in the store, and those in the folder of runs if it exists. */
async function runsOf(call: Call, { store }: Pawl): Promise<RunRecords[]> {
  const [trace_id, span_id] = [call.environment.ids.next(), call.environment.ids.next()]
  const author = { actor: 'doctor', trace_id, span_id }
  const { value: folder } = call.settings.runFolder
  const inStore = recordsOf(openStoreJournal({ store }), 'the store', author)
  if (!existsSync(folder)) return [inStore]
  const journal = await openFolderJournal({ path: folder })
  return [inStore, recordsOf(journal, visible(folder), author)]
}

function thresholdsOf(call: Call) {
  const after = textOf(call, 'stalledAfter')
  return after === undefined
    ? {}
    : { thresholds: { stalledMs: readDuration(after, 'stalled-after') } }
}

function progressOf({ output }: Call) {
  return { onProgress: (jobs: number) => output.progress(`${jobs} jobs checked`) }
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'doctor',
    summary: 'Check the store against every promise, and repair it with --apply',
    details:
      'Without --full jobs are checked for two seconds. --plan checks everything and prints what ' +
      'a repair would change; --apply repairs, in one transaction per job, and records a fact ' +
      'with operator and reason. Workers may run meanwhile. The exit code is 3 if there are ' +
      'findings.',
    options: [
      { flags: '--full', says: 'check every job, and the file itself' },
      { flags: '--plan', says: 'print what a repair would change; changes nothing' },
      { flags: '--apply', says: 'repair' },
      ...OPERATOR_OPTIONS,
      { flags: '--jobs <file>', says: 'a job file with its own lifecycles', repeats: true },
      {
        flags: '--stalled-after <duration>',
        says: 'report attempts that run longer than this (10m)',
      },
      FOLDER_OPTION,
    ],
    examples: [
      ['pawl doctor', 'a quick check'],
      ['pawl doctor --full --json', 'everything, for a script'],
      ['pawl doctor --plan', 'what a repair would change'],
      ['pawl doctor --apply --operator ann --reason "INC-7: disk"', 'repair'],
    ],
    run: examine,
  },
]
