/**
 * One run: its way through its machine, its work items in time, and everything that is stored of
 * it. The rail goes back to any of its events: the server folds the log up to there.
 */
import { shellWord } from '../../src/doctor/shell-word.ts'
import { canOperate } from '../api/session.ts'
import { useView } from '../api/view.ts'
import { count, counted } from '../format.ts'
import { machineOf } from '../machines.ts'
import { place, setQuery } from '../router.ts'
import {
  askToCancel,
  askToFork,
  askToLink,
  askToResume,
  askToRewind,
  FORCED_MAX,
  itemsSince,
} from '../runs/act.tsx'
import { RunDetails } from '../runs/details.tsx'
import { Gantt } from '../runs/gantt.tsx'
import { RunLife } from '../runs/life.tsx'
import { loadMoment, loadRun, type RunData, type RunMoment } from '../runs/load.ts'
import { runTone } from '../runs/tone.ts'
import { Cli, Copy, Empty, Failure, Name, Panel, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'

const EVERY_MS = 2000

export function RunPage({ id }: { id: string }) {
  const view = useView(id, (signal) => loadRun(id, signal), { everyMs: EVERY_MS })
  const { data, error, reload } = view
  if (data === undefined) {
    if (error === undefined) return <p class="muted">Loading the run…</p>
    return (
      <>
        <Top title={id} />
        <Failure error={error} retry={reload} />
        <Empty title="This run cannot be shown" line="pawl run list">
          The server has no run of this name that it can read.
        </Empty>
      </>
    )
  }
  return <Known data={data} error={error} reload={reload} />
}

/** The event that the address names, and the run after it. */
function useMoment(data: RunData): {
  moment: RunMoment
  error: ReturnType<typeof useView>['error']
} {
  const { run } = data
  const given = Number(place.value.query.get('at') ?? Number.NaN)
  const last = run.last_seq
  const wanted = Number.isInteger(given) && given > 0 ? Math.min(given, last) : last
  const { data: past, error } = useView(`${run.run_id} ${wanted}`, (signal) =>
    loadMoment(run.run_id, wanted, signal),
  )
  const isNow = wanted === last
  // While the past loads, the rail is already there and the rest shows the last moment.
  const at = wanted
  const shown = isNow ? run : (past?.run ?? run)
  return { moment: { at, isNow, run: shown, changes: past?.changes ?? [] }, error }
}

function Known({
  data,
  error,
  reload,
}: {
  data: RunData
  error: ReturnType<typeof useView>['error']
  reload: () => void
}) {
  const { moment, error: pastError } = useMoment(data)
  const travel = (to: number | undefined) => {
    const isNow = to === undefined || to >= data.run.last_seq
    setQuery({ at: isNow ? undefined : String(to) }, { replace: true })
  }
  return (
    <>
      <Head data={data} moment={moment} reload={reload} />
      <div class="stack">
        <Failure error={error ?? pastError} retry={reload} />
        <Why data={data} moment={moment} />
        <Panel title={titleOf(moment, data)}>
          <RunLife data={data} moment={moment} travel={travel} />
        </Panel>
        <Panel title="Work items in time">
          <Gantt data={data} moment={moment} />
        </Panel>
        <RunDetails data={data} moment={moment} travel={travel} />
        <Cli line={showLine(data.run.run_id, moment)} />
      </div>
    </>
  )
}

function showLine(id: string, { at, isNow }: RunMoment): string {
  return `pawl run show ${shellWord(id)}${isNow ? '' : ` --at ${at}`}`
}

function titleOf({ at, isNow }: RunMoment, { run }: RunData): string {
  return isNow
    ? `Its way: ${counted(run.last_seq, 'event')}`
    : `Its way, as of event ${count(at)} of ${count(run.last_seq)}`
}

interface ActionsProps {
  readonly data: RunData
  readonly moment: RunMoment
  readonly reload: () => void
}

/** The buttons of operators. The server decides what applies. */
function Actions({ data, moment, reload }: ActionsProps) {
  const { run_id: id, machine } = data.run
  const known = machineOf('run', machine.name, machine.version)
  const hasEnded = ['succeeded', 'failed', 'cancelled'].includes(runTone(data.run.run_state, known))
  // While the past loads, the run is that of another moment.
  const isThere = !moment.isNow && moment.run.last_seq === moment.at
  const items = isThere ? itemsSince(data.run, moment.run) : []
  const canRewind = !hasEnded && items.length > 0 && items.length <= FORCED_MAX
  const { at } = moment
  if (!canOperate.value) return null
  const button = (title: string, ask: () => void, isFirst = false) => (
    <button type="button" class={isFirst ? 'button primary' : 'button'} onClick={ask}>
      {title}…
    </button>
  )
  return (
    <div class="row">
      {button('Link a commit', () => askToLink(id, reload))}
      {button(`Fork at #${at}`, () => askToFork(id, at))}
      {canRewind && button(`Rewind to #${at}`, () => askToRewind(id, { at, items }, reload))}
      {!hasEnded && button('Cancel', () => askToCancel(id, reload))}
      {!hasEnded && button('Resume', () => askToResume(id, reload), true)}
    </div>
  )
}

function Head({ data, moment, reload }: ActionsProps) {
  const { run_id: id, run_state: state, machine } = moment.run
  const known = machineOf('run', machine.name, machine.version)
  const tone = runTone(state, known)
  return (
    <Top title={id} actions={<Actions data={data} moment={moment} reload={reload} />}>
      <State tone={tone} word={state} />
      <span class="mono muted">
        {machine.name} v{machine.version} <Copy text={id} label="Copy the id" />
      </span>
    </Top>
  )
}

/** The first line is a sentence: how far it is, who works on it, and what is wrong. */
function Why({ data, moment: { run, isNow } }: { data: RunData; moment: RunMoment }) {
  const items = Object.values(run.work_items)
  const finished = items.filter(({ status }) => status === 'finished').length
  const stale = Object.values(run.artifacts_index).filter((one) => one.stale_because !== null)
  const issues = Object.values(run.issues).filter(({ status }) => status === 'open')
  const { holder, cancelRequest, damage } = data
  const parts = [
    `${count(finished)} of ${counted(items.length, 'work item')} finished`,
    stale.length > 0 && `${counted(stale.length, 'artifact')} stale`,
    issues.length > 0 && `${counted(issues.length, 'issue')} open`,
    run.fix_attempts > 0 && `${run.fix_attempts} of ${run.max_fix_attempts} fix attempts spent`,
  ].filter(Boolean)
  const who = holder ? ` Process ${holder.pid} on ${holder.host} works on it.` : IDLE
  return (
    <section class="panel why" aria-label="Where it is">
      <p>
        It {isNow ? 'is' : 'was'} {run.run_state}: {parts.join(', ')}.
        {isNow && run.ended_because === null && who}{' '}
        {run.ended_because !== null && <Name text={`It ended because ${run.ended_because}.`} />}
        {cancelRequest && <Name text={` Somebody asked to cancel it: ${cancelRequest.reason}.`} />}
        {damage && <Name text={` Its log is damaged at line ${damage.line}: ${damage.why}.`} />}
      </p>
    </section>
  )
}

const IDLE = ' No process works on it.'
