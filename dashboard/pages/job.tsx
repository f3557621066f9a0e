/**
 * One job: why it is where it is, its life on its machine, its attempts, and everything that is
 * stored of it. The rail goes back to any of its facts: the page folds the facts up to there with
 * the function of the engine itself, so graph, attempts and table show the same moment.
 */
import { reasonToFind } from '../../src/core/job/waits.ts'
import { shellWord } from '../../src/doctor/shell-word.ts'
import { canOperate } from '../api/session.ts'
import { useView, type View } from '../api/view.ts'
import { count, counted } from '../format.ts'
import { askFor } from '../jobs/act.tsx'
import { Attempts } from '../jobs/attempts.tsx'
import { Details } from '../jobs/details.tsx'
import { Life } from '../jobs/life.tsx'
import { Links } from '../jobs/links.tsx'
import { asOf, type JobData, loadJob, type Moment } from '../jobs/load.ts'
import { APPROVE, VERBS } from '../jobs/verbs.ts'
import { jobTone } from '../machines.ts'
import { hrefOf, place, setQuery } from '../router.ts'
import { Cli, Copy, Empty, Failure, Name, Panel, Top } from '../ui/parts.tsx'
import { State } from '../ui/state.tsx'

export function JobPage({ id }: { id: string }) {
  const view = useView(id, (signal) => loadJob(id, signal), {
    on: (fact) => fact.jobId === id,
    everyMs: 5000,
  })
  const { data, error, reload } = view
  if (data === undefined) return <Missing id={id} view={view} />
  const wanted = Number(place.value.query.get('at') ?? Number.NaN)
  const moment = asOf(data, Number.isInteger(wanted) && wanted > 0 ? wanted : undefined)
  const travel = (to: number | undefined) => {
    const isNow = to === undefined || to >= data.job.seq
    setQuery({ at: isNow ? undefined : String(to) }, { replace: true })
  }
  return (
    <>
      <Head data={data} moment={moment} reload={reload} />
      <div class="stack">
        <Failure error={error} retry={reload} />
        <Why data={data} />
        <Links job={data.job} />
        <div class="columns stretch">
          <Panel title={titleOf(moment, data)}>
            <Life data={data} moment={moment} travel={travel} />
          </Panel>
          <Panel title="Attempts">
            <Attempts data={data} moment={moment} />
          </Panel>
        </div>
        <Details data={data} moment={moment} travel={travel} />
      </div>
    </>
  )
}

function titleOf({ at, isNow }: Moment, { job }: JobData): string {
  return isNow
    ? `Its life: ${counted(job.seq, 'fact')}`
    : `Its life, as of fact ${count(at)} of ${count(job.seq)}`
}

function Missing({ id, view: { error, reload } }: { id: string; view: View<JobData> }) {
  if (error === undefined) return <p class="muted">Loading the job…</p>
  if (error.status !== 404) return <Failure error={error} retry={reload} />
  return (
    <Empty title="There is no such job" line={`pawl audit list --job=${shellWord(id)}`}>
      The store has no job with the id <Name text={id} />. It may have been removed by retention, or
      belong to another store.
    </Empty>
  )
}

function Head({ data, moment, reload }: { data: JobData; moment: Moment; reload: () => void }) {
  const { job } = data
  const tone = jobTone(job)
  const isAsking = job.execution === null && job.reason?.startsWith(reasonToFind('') ?? '')
  const verbs = job.stalled ? [APPROVE] : VERBS.filter(({ tones }) => tones.includes(tone))
  const [first, ...rest] = verbs
  return (
    <Top
      title={job.type}
      actions={
        canOperate.value &&
        moment.isNow && (
          <>
            {isAsking && (
              <a class="button" href={hrefOf('/inbox', { type: job.type })}>
                Answer in the inbox
              </a>
            )}
            {rest.reverse().map((spec) => (
              <button
                key={spec.verb}
                type="button"
                class="button"
                onClick={() => askFor(spec, { ids: [job.id] }, reload)}
              >
                {spec.title}…
              </button>
            ))}
            {first && (
              <button
                type="button"
                class="button primary"
                onClick={() => askFor(first, { ids: [job.id] }, reload)}
              >
                {first.title}…
              </button>
            )}
          </>
        )
      }
    >
      <State tone={tone} word={job.state} />
      <span class="mono muted">
        {job.id} <Copy text={job.id} />
      </span>
    </Top>
  )
}

/** The first line is a sentence, with the command that would change it. */
function Why({ data: { explanation } }: { data: JobData }) {
  const { says, command } = explanation
  return (
    <section class="panel why" aria-label="Why it is where it is">
      <p>
        <Name text={says} />
      </p>
      {command && <Cli line={command} />}
    </section>
  )
}
