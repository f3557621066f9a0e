/** `pawl run list|show|events|explain|diff|replay|verify`. */
import { existsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { changesBetween } from '../../audit/diff.ts'
import { RunNotFound } from '../../core/errors.ts'
import type { RunEvent } from '../../core/run/events.ts'
import type { Run } from '../../core/run/run.ts'
import type { ItemExplanation, RunExplanation } from '../../runs/explain.ts'
import type { Damage } from '../../runs/journal/journal.ts'
import { encodeSnapshot } from '../../runs/journal/snapshot.ts'
import type { ListedRun } from '../../runs/listing.ts'
import { openRuns, type Runs } from '../../runs/runs.ts'
import { eachOf } from '../each.ts'
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import type { Output } from '../output.ts'
import {
  PLACE_OPTIONS,
  RESUME_OPTIONS,
  RUNS_OPTION,
  resumeOptionsOf,
  runIdOf,
  withDefinedRuns,
  withRuns,
} from '../run-files.ts'
import { type Call, type CommandSpec, hasFlag, textsOf, wholeOf } from '../spec.ts'
import { shortened, visible } from '../visible.ts'

const DATA_MAX = 160

async function list(call: Call): Promise<ExitCode> {
  const { output } = call
  const isChecked = hasFlag(call, 'check')
  return withRuns(call, async (runs) => {
    const all = await runs.list({ check: isChecked })
    if (output.json) {
      for (const { runId, run, damage, problem, snapshotDiffers } of all) {
        output.record({ run_id: runId, ...summaryOf(run), damage, problem, snapshotDiffers })
      }
    } else printList(output, all)
    const isDamaged = all.some(({ damage, problem }) => (damage ?? problem) !== undefined)
    return isChecked && isDamaged ? EXIT.findings : EXIT.ok
  })
}

function printList(output: Output, all: readonly ListedRun[]): void {
  if (all.length === 0) output.say('There are no runs yet.')
  const columns = ['run', 'state', 'machine', 'events', 'items', 'issues'].map((head) => ({
    head,
  }))
  const rows = all.map(({ runId, run, damage, problem }) => {
    const what = damage === undefined ? 'unreadable' : 'damaged'
    if (problem !== undefined) return [runId, what, '', '', '', '']
    if (run === undefined) return [runId, 'no valid snapshot', '', '', '', '']
    const { run_state, machine, events, items, open_issues } = summaryOf(run)
    return [runId, run_state, machine, events, items, open_issues].map(String)
  })
  output.table(columns, rows)
  for (const { runId, problem, snapshotDiffers } of all) {
    if (problem !== undefined) output.say(visible(problem))
    if (snapshotDiffers) {
      output.say(
        `The snapshot of ${visible(runId)} says something else than its log, which counts.`,
      )
    }
  }
}

function summaryOf(run: Run | undefined) {
  const items = Object.values(run?.work_items ?? {})
  return {
    run_state: run?.run_state ?? null,
    machine: run?.machine.name ?? null,
    events: run?.last_seq ?? null,
    items: `${items.filter(({ status }) => status === 'finished').length}/${items.length}`,
    open_issues: Object.values(run?.issues ?? {}).filter(({ status }) => status === 'open').length,
  }
}

async function show(call: Call): Promise<undefined> {
  const [argument = ''] = call.args
  const { output } = call
  const at = wholeOf(call, 'at', 1)
  await withRuns(call, async (runs) => {
    const runId = runIdOf(argument)
    const shown = await runs.show(runId)
    const run = at === undefined ? shown.run : await asOf(runs, runId, at)
    if (output.json) {
      const { holder, cancelRequest, damage, tornBytes } = shown
      output.record({ ...run, holder, cancelRequest, damage, tornBytes })
      return
    }
    printRun(output, run)
    const { holder, damage, cancelRequest } = shown
    if (at !== undefined) {
      if (damage !== undefined && damage.line <= at) output.line(damageText(damage))
      return
    }
    if (holder !== undefined) {
      output.line(`held by ${visible(holder.host)}, process ${holder.pid}, since ${holder.since}`)
    }
    if (cancelRequest !== undefined)
      output.line(`to be cancelled: ${visible(cancelRequest.reason)}`)
    if (damage !== undefined) output.line(damageText(damage))
  })
  return undefined
}

export function damageText({ line, offset, why }: Damage): string {
  const where = line === 0 ? 'the log is missing' : `damaged in line ${line}, byte ${offset}`
  return `${where}: ${visible(why)}`
}

async function asOf(runs: Runs, runId: string, seq: number): Promise<Run> {
  const run = await (await runs.journal.read(runId)).asOf(seq)
  if (run === undefined) throw new UsageInvalid(`The run has no event ${seq}`)
  return run
}

function printRun(output: Output, run: Run): void {
  const { run_id, run_state, machine, last_seq, fix_attempts, max_fix_attempts } = run
  output.line(`${run_id}  ${output.style('bold', visible(run_state))}`)
  output.line(`machine ${visible(machine.name)} version ${machine.version}, ${last_seq} events`)
  output.line(`fix attempts ${fix_attempts} of ${max_fix_attempts}`)
  if (run.ended_because !== null) output.line(`because: ${visible(run.ended_because)}`)
  for (const sha of run.commits) output.line(`commit ${sha}`)
  const sections = Object.entries(run.section_states)
  if (sections.length > 0) output.line('\nsections')
  output.table([{ head: 'section' }, { head: 'state' }], sections)
  const items = Object.entries(run.work_items)
  if (items.length > 0) output.line('\nwork items')
  output.table(
    ['item', 'status', 'attempts', 'worker', 'error'].map((head) => ({ head })),
    items.map(([key, { status, attempts, worker, error }]) => [
      ...[key, status, String(attempts), worker, error ?? ''],
    ]),
  )
  const artifacts = Object.entries(run.artifacts_index)
  if (artifacts.length > 0) output.line('\nartifacts')
  output.table(
    ['artifact', 'sha256', 'of item', 'stale because'].map((head) => ({ head })),
    artifacts.map(([name, { sha256, work_item, stale_because }]) => [
      ...[name, sha256.slice(0, 12), work_item ?? '-', stale_because ?? ''],
    ]),
  )
  const issues = Object.entries(run.issues)
  if (issues.length > 0) output.line('\nissues')
  output.table(
    ['issue', 'status', 'severity', 'message'].map((head) => ({ head })),
    issues.map(([name, { status, severity, message }]) => [name, status, severity, message]),
  )
}

async function events(call: Call): Promise<undefined> {
  const [argument = ''] = call.args
  const { output } = call
  const [from, to] = [wholeOf(call, 'from', 1), wholeOf(call, 'to', 1)]
  const types = textsOf(call, 'type')
  await withRuns(call, async (runs) => {
    const range = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
    for await (const event of runs.events(runIdOf(argument), range)) {
      if (types.length > 0 && !types.includes(event.type)) continue
      if (output.json) output.record(event)
      else output.line(`${event.ts}  ${lineOf(event)}`)
      await output.taken()
      if (output.gone.aborted) return
    }
  })
  return undefined
}

/** Writes an event to stderr; frequent events only with --verbose. */
export function sayEvent(output: Output, event: RunEvent): void {
  if (/^(ARTIFACT|WORK_ITEM_(STARTED|FINISHED))/.test(event.type)) output.explain(lineOf(event))
  else output.say(lineOf(event))
}

function lineOf({ seq, type, data }: RunEvent): string {
  const text = shortened(visible(JSON.stringify(data)), DATA_MAX)
  return `${String(seq).padStart(5)}  ${type.padEnd(20)}  ${text}`
}

async function explain(call: Call): Promise<undefined> {
  const [argument = ''] = call.args
  await withDefinedRuns(call, async (runs) => {
    const explained = await runs.explain(runIdOf(argument), resumeOptionsOf(call))
    if (call.output.json) call.output.record(explained)
    else printExplanation(call.output, explained)
  })
  return undefined
}

function printExplanation(output: Output, explained: RunExplanation): void {
  const { runId, state, hasEnded, refusal, rewinds, continuesIn, changedInputs } = explained
  const { damage, damaged, items } = explained
  const ending = refusal === null ? ' and has ended: a resume does nothing.' : '.'
  output.line(`${visible(runId)} is in ${visible(state)}${hasEnded ? ending : '.'}`)
  if (refusal !== null) {
    const { code, message, hint } = refusal
    output.line(`a resume is rejected: ${visible(message)} (${code}). ${visible(hint)}`)
  }
  if (damage !== undefined) output.line(`the log of the run: ${damageText(damage)}`)
  const willFail = damage !== undefined && refusal === null
  if (willFail) output.line('resuming it records the damage and fails the run')
  const changed = hasEnded ? 'input changed since then' : 'input changed'
  for (const name of changedInputs) output.line(`${changed}: ${visible(name)}`)
  for (const name of damaged) output.line(`artifact damaged: ${visible(name)}`)
  for (const { from, to, reason } of rewinds) {
    const why = reason === 'stale' ? 'an item before it runs again' : 'it is transitional'
    output.line(`is rewound from ${visible(from)} to ${visible(to)}: ${why}`)
  }
  const isPlanned = !hasEnded && !willFail && items.every(({ because }) => because !== 'refused')
  if (isPlanned) output.line(`continues in ${visible(continuesIn)}`)
  const columns = ['item', 'state', 'verdict', 'because'].map((head) => ({ head }))
  output.table(
    columns,
    items.map((item) => [item.key, item.state, item.verdict, reasonOf(item)]),
  )
}

const REASONS: Readonly<Record<ItemExplanation['because'], string>> = {
  ended: 'the run has ended or its log is damaged, so no item runs',
  refused: 'a resume of the run is rejected',
  fresh: 'it has finished, and none of its inputs has changed',
  interrupted: 'it was started and not finished',
  failed: 'it failed the last time',
  forced: 'it was forced',
  damaged: 'the content of an output is missing or changed',
  input_changed: 'one of its inputs has changed',
  parameters: 'its node may pass other values; it is skipped if they are the same',
  upstream: 'an item before it runs again; it is skipped if the outputs are the same',
}

function reasonOf({ because, artifact }: ItemExplanation): string {
  return artifact === null ? REASONS[because] : `${REASONS[because]}: ${artifact}`
}

async function diff(call: Call): Promise<undefined> {
  const [argument = ''] = call.args
  const { output } = call
  await withRuns(call, async (runs) => {
    const runId = runIdOf(argument)
    const { run } = await runs.show(runId)
    const [from, to] = [wholeOf(call, 'from', 1) ?? 1, wholeOf(call, 'to', 1) ?? run.last_seq]
    const changes = changesBetween(await asOf(runs, runId, from), await asOf(runs, runId, to))
    for (const change of changes) {
      if (output.json) output.record(change)
      else {
        const [before, after] = [change.before, change.after].map((value) =>
          value === undefined ? '-' : shortened(visible(JSON.stringify(value)), DATA_MAX),
        )
        output.line(`${visible(change.path.join('.'))}: ${before} → ${after}`)
      }
    }
    if (changes.length === 0) output.say('There are no differences.')
  })
  return undefined
}

/** Rebuilds the snapshot from the events. The argument may be the folder of a run. */
async function replay(call: Call): Promise<undefined> {
  const [argument = ''] = call.args
  const { output, settings } = call
  if (settings.runsIn.value === 'store') {
    await withRuns(call, (runs) => printSnapshot(output, runs, runIdOf(argument)))
    return undefined
  }
  const isFolder = existsSync(join(resolve(argument), 'events.ndjson'))
  const path = isFolder ? resolve(argument) : join(settings.runFolder.value, argument)
  if (!existsSync(path)) throw new RunNotFound()
  await using runs = await openRuns({ folder: dirname(path) })
  await printSnapshot(output, runs, basename(path))
  return undefined
}

/** A snapshot is canonical JSON, with or without --json. */
async function printSnapshot(output: Output, runs: Runs, runId: string): Promise<void> {
  const { run, lastHash } = await runs.show(runId)
  output.line(encodeSnapshot(run, lastHash).trimEnd())
}

/** Notices do not count, as in `pawl doctor`. */
async function verify(call: Call): Promise<ExitCode> {
  const { output } = call
  return withRuns(call, async (runs) => {
    const all = call.args.length > 0 ? call.args.map(runIdOf) : await runs.journal.list()
    const found = { error: 0, notice: 0 }
    const code = await eachOf(call, 'run_id', all, async (runId) => {
      for (const finding of await runs.verify(runId)) {
        found[finding.severity]++
        if (output.json) output.record({ run_id: runId, ...finding })
        else output.line(`${visible(runId)} ${finding.severity} ${visible(finding.message)}`)
      }
    })
    const counts = `${found.error} errors, ${found.notice} notices`
    output.say(`${all.length} runs checked: ${counts}.`)
    if (code !== EXIT.ok) return code
    return found.error > 0 ? EXIT.findings : EXIT.ok
  })
}

const RUN_ARGUMENT = { flags: '<run>', says: 'the id of the run' }

export const commands: readonly CommandSpec[] = [
  {
    name: 'run list',
    summary: 'List runs by their snapshots',
    details:
      'Reads only the snapshots, without a check: new damage and changed snapshots are not ' +
      'detected. With --check every log is read and checked, the states come from the logs, and ' +
      'the exit code is 3 if a run is damaged or unreadable.',
    options: [
      ...PLACE_OPTIONS,
      { flags: '--check', says: 'read and check the whole log of each run' },
    ],
    examples: [['pawl run list --json | jq .run_state', 'the states of all runs']],
    run: list,
  },
  {
    name: 'run show',
    summary: 'Show a run: state, sections, work items, artifacts, issues and lease holder',
    args: [RUN_ARGUMENT],
    options: [...PLACE_OPTIONS, { flags: '--at <seq>', says: 'the run after this event' }],
    examples: [
      ['pawl run show docs-7', 'the current state'],
      ['pawl run show docs-7 --at 12', 'the state after its twelfth event'],
    ],
    run: show,
  },
  {
    name: 'run events',
    summary: 'Print and check the log of a run',
    args: [RUN_ARGUMENT],
    options: [
      ...PLACE_OPTIONS,
      { flags: '--from <seq>', says: 'from this event on' },
      { flags: '--to <seq>', says: 'up to this event' },
      { flags: '--type <type>', says: 'only events of this type', repeats: true },
    ],
    examples: [['pawl run events docs-7 --type WORK_ITEM_FAILED', 'what failed']],
    run: events,
  },
  {
    name: 'run explain',
    summary: 'Explain which work items a resume would run again, and why',
    details: 'Changes nothing. If a resume would be rejected, it prints that error.',
    args: [RUN_ARGUMENT],
    options: [RUNS_OPTION, ...PLACE_OPTIONS, ...RESUME_OPTIONS],
    examples: [['pawl run explain docs-7 --force "draft intro"', 'with one item forced']],
    run: explain,
  },
  {
    name: 'run diff',
    summary: 'Compare two past states of a run',
    args: [RUN_ARGUMENT],
    options: [
      ...PLACE_OPTIONS,
      { flags: '--from <seq>', says: 'after this event; 1 if absent' },
      { flags: '--to <seq>', says: 'after this event; the last one if absent' },
    ],
    examples: [['pawl run diff docs-7 --from 12 --to 20', 'what these events changed']],
    run: diff,
  },
  {
    name: 'run replay',
    summary: 'Rebuild the snapshot of a run from its events, and print it',
    details: 'Prints the same bytes as snapshot.json. Changes nothing.',
    args: [{ flags: '<run>', says: 'the id or folder of the run' }],
    options: PLACE_OPTIONS,
    examples: [['pawl run replay runs/docs-7 | diff - runs/docs-7/snapshot.json', 'compare both']],
    run: replay,
  },
  {
    name: 'run verify',
    summary: 'Verify log, hash chain, schemas, snapshot and artifacts of runs',
    details:
      'The exit code is 3 if a run is damaged. Notices, such as a snapshot that is older than ' +
      'its log, do not count: opening the run repairs them.',
    args: [{ flags: '[runs...]', says: 'ids of runs; all if absent' }],
    options: PLACE_OPTIONS,
    examples: [['pawl run verify', 'all runs']],
    run: verify,
  },
]
