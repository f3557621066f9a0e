/** The dialog in which a person answers a job that waits for a signal. */
import { type Signal, signal } from '@preact/signals'
import { shellWord } from '../../src/doctor/shell-word.ts'
import { type Answer, call } from '../api/client.ts'
import { askFor } from '../jobs/act.tsx'
import type { VerbSpec } from '../jobs/verbs.ts'
import { Action, openDialog, type Signed } from '../ui/dialogs.tsx'
import { type FormField, fieldsOf, payloadOf, type Written } from './form.ts'

export type InboxItem = Answer<'showInbox'>['items'][number]

const APPROVE: VerbSpec = {
  verb: 'approve',
  title: 'Approve',
  says: 'The job goes on, and its handler learns who approved it.',
  tones: ['waiting'],
}

const REJECT: VerbSpec = {
  verb: 'reject',
  title: 'Reject',
  says: 'The job goes on: its handler decides what follows from the rejection.',
  tones: ['waiting'],
}

/** The buttons of an entry. */
export function Answers({ item, then }: { item: InboxItem; then: () => void }) {
  const chosen = { ids: [item.job.id] }
  if (!item.isApproval) {
    return (
      <button type="button" class="button primary" onClick={() => askToSend(item, then)}>
        Answer…
      </button>
    )
  }
  return (
    <>
      <button type="button" class="button primary" onClick={() => askFor(APPROVE, chosen, then)}>
        Approve…
      </button>
      <button type="button" class="button" onClick={() => askFor(REJECT, chosen, then)}>
        Reject…
      </button>
    </>
  )
}

/** Asks for the payload, by a form if the schema of the signal allows one. */
function askToSend({ job, signal: name, schema }: InboxItem, then: () => void): void {
  const fields = fieldsOf(schema)
  const written = signal<Written>({})
  // The same key in every try: an answer that was lost on its way is not stored twice.
  const key = crypto.randomUUID()
  const act = async (signed: Signed) => {
    const filled = payloadOf(fields, written.value)
    const payload = 'payload' in filled ? filled.payload : null
    const body = { name, key, payload, ...signed }
    await call('sendSignal', { params: { id: job.id }, body })
    then()
    return `The signal ${name} is sent.`
  }
  openDialog(
    <Action
      title={`Send ${name} to this job`}
      verb="Send"
      says="The signal is kept until the job receives it."
      fields={<Fields fields={fields} written={written} />}
      isReady={() => 'payload' in payloadOf(fields, written.value)}
      cli={(signed) => lineOf(job.id, name, payloadOf(fields, written.value), signed)}
      act={act}
    />,
  )
}

function lineOf(
  id: string,
  name: string,
  filled: ReturnType<typeof payloadOf>,
  { reason, operator }: Signed,
): string {
  const payload = 'payload' in filled ? shellWord(JSON.stringify(filled.payload)) : '…'
  const why = reason === '…' ? '--reason …' : `--reason=${shellWord(reason)}`
  const who = operator === undefined ? '' : ` --operator=${shellWord(operator)}`
  return `pawl signal send ${why}${who} -- ${shellWord(id)} ${shellWord(name)} ${payload}`
}

function Fields({
  fields,
  written,
}: {
  fields: readonly FormField[] | undefined
  written: Signal<Written>
}) {
  const filled = payloadOf(fields, written.value)
  const write = (name: string, text: string) => {
    written.value = { ...written.value, [name]: text }
  }
  return (
    <>
      {fields === undefined ? (
        <label class="labelled">
          <span>Payload, as JSON</span>
          <textarea
            class="field mono"
            rows={5}
            spellcheck={false}
            value={written.value[''] ?? ''}
            placeholder="null"
            onInput={(event) => write('', event.currentTarget.value)}
          />
        </label>
      ) : (
        fields.map((field) => (
          <FieldInput
            key={field.name}
            field={field}
            text={written.value[field.name] ?? ''}
            write={(text) => write(field.name, text)}
          />
        ))
      )}
      {'fault' in filled && Object.keys(written.value).length > 0 && (
        <p class="tone-failed" role="status">
          {filled.fault}
        </p>
      )}
    </>
  )
}

function FieldInput({
  field,
  text,
  write,
}: {
  field: FormField
  text: string
  write: (text: string) => void
}) {
  const { label, says, kind, isRequired } = field
  if (kind === 'flag') {
    return (
      <label class="row">
        <input
          type="checkbox"
          checked={text === 'yes'}
          onChange={(event) => write(event.currentTarget.checked ? 'yes' : 'no')}
        />
        <bdi>{label}</bdi>
      </label>
    )
  }
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: Control is an input or a select
    <label class="labelled">
      <span>
        <bdi>{label}</bdi>
        {!isRequired && <span class="muted"> (optional)</span>}
      </span>
      <Control field={field} text={text} write={write} />
      {says && (
        <span class="small muted">
          <bdi>{says}</bdi>
        </span>
      )}
    </label>
  )
}

function Control({
  field: { kind, choices },
  text,
  write,
}: {
  field: FormField
  text: string
  write: (text: string) => void
}) {
  if (kind === 'choice') {
    return (
      <select class="field" value={text} onChange={(event) => write(event.currentTarget.value)}>
        <option value="">–</option>
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    )
  }
  return (
    <input
      class="field"
      inputMode={kind === 'number' ? 'decimal' : undefined}
      value={text}
      onInput={(event) => write(event.currentTarget.value)}
    />
  )
}
