/** A field of a command's dialog. Its text is a signal, so that the command line follows it. */
import type { Signal } from '@preact/signals'

export function Field({
  label,
  text,
  placeholder,
  fault,
}: {
  label: string
  text: Signal<string>
  placeholder?: string
  fault?: string
}) {
  return (
    <label class="labelled">
      <span>{label}</span>
      <input
        class="field"
        value={text.value}
        placeholder={placeholder}
        maxLength={100}
        aria-invalid={fault === undefined ? undefined : 'true'}
        onInput={(event) => {
          text.value = event.currentTarget.value
        }}
      />
      {fault && <span class="tone-failed">{fault}</span>}
    </label>
  )
}
