/** Dialogs, messages that pass, and the action dialog: operator, reason, dry run, command line. */
import { signal } from '@preact/signals'
import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Refused } from '../api/client.ts'
import { caller, choosesName, operatorName, setOperatorName } from '../api/session.ts'
import { Cli, Failure } from './parts.tsx'

/** A modal dialog. Escape and a click beside it close it. */
export function Dialog({
  label,
  close,
  children,
  kind,
}: {
  label: string
  close: () => void
  children: ComponentChildren
  kind?: string
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it
    <dialog
      ref={dialog}
      aria-label={label}
      class={kind}
      onClose={close}
      onClick={(event) => event.target === dialog.current && close()}
    >
      {children}
    </dialog>
  )
}

/** The dialog that is open; pages set it by `openDialog`. */
export const dialog = signal<ComponentChildren>(undefined)

export function openDialog(content: ComponentChildren): void {
  dialog.value = content
}

export function closeDialog(): void {
  dialog.value = undefined
}

interface Toast {
  readonly id: number
  readonly content: ComponentChildren
}

const TOAST_MS = 8000
const TOASTS_MAX = 3
const toasts = signal<readonly Toast[]>([])
let nextToast = 1

/** Shows a message for some seconds. */
export function toast(content: ComponentChildren): void {
  const id = nextToast++
  toasts.value = [...toasts.value, { id, content }].slice(-TOASTS_MAX)
  setTimeout(() => {
    toasts.value = toasts.value.filter((one) => one.id !== id)
  }, TOAST_MS)
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, content }) => (
        <div class="toast" key={id}>
          {content}
        </div>
      ))}
    </div>
  )
}

export interface Signed {
  readonly reason: string
  readonly operator?: string
}

export interface ActionProps {
  /** Its object and count: `Redrive 12 jobs`. */
  readonly title: string
  readonly says?: ComponentChildren
  /** The same as a command; `reason` is filled in while the person types. */
  readonly cli: (signed: Signed) => string
  /** What it would do; shown when the dialog opens. */
  readonly preview?: () => Promise<ComponentChildren>
  /** Does it, and returns what happened. */
  readonly act: (signed: Signed) => Promise<ComponentChildren>
  /** Further fields above the reason. */
  readonly fields?: ComponentChildren
  /** The word on the button; the title if absent. */
  readonly verb?: string
  /** Whether the further fields are filled in. */
  readonly isReady?: () => boolean
  /** The API takes neither a name nor a reason. */
  readonly unsigned?: boolean
}

function useSignature() {
  const [name, setName] = useState(operatorName.value)
  const [reason, setReason] = useState('')
  const chooses = choosesName.value
  const signed: Signed = {
    reason: reason.trim(),
    ...(chooses && name.trim() !== '' && { operator: name.trim() }),
  }
  return { name, setName, reason, setReason, chooses, signed }
}

function Signature({
  name,
  setName,
  reason,
  setReason,
  chooses,
  field,
}: ReturnType<typeof useSignature> & { field: RefObject<HTMLInputElement> }) {
  return (
    <>
      {chooses ? (
        <label class="labelled">
          <span>Your name</span>
          <input
            class="field"
            value={name}
            maxLength={200}
            autocomplete="username"
            placeholder="loopback"
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
      ) : (
        <p class="small muted">You act as {caller.value?.name}.</p>
      )}
      <label class="labelled">
        <span>Reason, recorded in the ledger</span>
        <input
          class="field"
          value={reason}
          required
          maxLength={1000}
          ref={field}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </label>
    </>
  )
}

/** Asks for a name and a reason, and does it. The ledger records both. */
export function Action(props: ActionProps) {
  const { title, says, cli, preview, act, fields, verb = title, isReady = () => true } = props
  const { unsigned = false } = props
  const signature = useSignature()
  const { signed } = signature
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Refused>()
  const [shown, setShown] = useState<ComponentChildren>()
  const reasonField = useRef<HTMLInputElement>(null)
  const asked = useRef(preview)
  useEffect(() => {
    const show = (content: ComponentChildren) => setShown(content)
    reasonField.current?.focus()
    asked.current?.().then(show, (failed) => setError(refusedBy(failed)))
  }, [])
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      if (signed.operator) setOperatorName(signed.operator)
      toast(await act(signed))
      closeDialog()
    } catch (failed) {
      setError(refusedBy(failed))
      setBusy(false)
    }
  }
  const cannot = busy || (!unsigned && signed.reason === '') || !isReady()
  return (
    <Dialog label={title} close={closeDialog}>
      <form onSubmit={(event) => void submit(event)}>
        <h1>{title}</h1>
        {says && <p>{says}</p>}
        {preview && <div class="notice">{shown ?? 'Looking at what would change…'}</div>}
        {fields}
        {!unsigned && <Signature {...signature} field={reasonField} />}
        <Cli line={cli({ ...signed, reason: signed.reason || '…' })} />
        <Failure error={error} />
        <div class="buttons">
          <button type="button" class="button" onClick={closeDialog}>
            Close
          </button>
          <button type="submit" class="button primary" disabled={cannot}>
            {verb}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function refusedBy(error: unknown): Refused {
  if (error instanceof Refused) return error
  return new Refused(0, { title: String(error), code: 'DASHBOARD', hint: '' })
}
