/** The signals of a job, and what it waits for. */
import { call } from '../api/client.ts'
import { useView } from '../api/view.ts'
import { Empty, Failure, Name, Time } from '../ui/parts.tsx'
import { PayloadText } from '../ui/payload.tsx'

export function Signals({ id, seq }: { id: string; seq: number }) {
  const { data, error, reload } = useView(`${id} ${seq} signals`, (signal) =>
    call('listSignals', { params: { id }, query: { limit: 1000 } }, signal),
  )
  if (data === undefined) return <Failure error={error} retry={reload} />
  const { items, waitsFor } = data
  return (
    <div class="stack">
      {waitsFor && (
        <p>
          Waits for the {waitsFor.for === 'sleep' ? 'end of the sleep' : 'signal'}{' '}
          <Name text={waitsFor.name} />, until <Time at={waitsFor.until} none="it arrives" />.
        </p>
      )}
      {items.length === 0 && (
        <Empty title="No signals" line={`pawl signal send ${id} NAME '{}'`}>
          A signal is a message to this job. It is kept until the handler waits for it.
        </Empty>
      )}
      {items.map(({ seq: own, at, name, key, by, note, receivedBy, payload }) => (
        <article key={own}>
          <p>
            <b>
              <Name text={name} />
            </b>{' '}
            <span class="small muted">
              #{own}, <Time at={at} />, by <Name text={by} />, key <Name text={key} />,{' '}
              {receivedBy === undefined ? 'unread' : `received by #${receivedBy}`}
            </span>
          </p>
          {note && (
            <p class="small muted">
              <Name text={note} />
            </p>
          )}
          <PayloadText payload={payload} />
        </article>
      ))}
    </div>
  )
}
