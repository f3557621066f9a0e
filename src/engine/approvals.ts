/**
 * Approvals: a signal of the name `approval`, and what a handler learns of it. Who has decided is
 * taken from the fact of the signal, never from its payload, so a sender cannot claim another name.
 */
import { name as checkName, NOTE_MAX, text } from '../core/checks.ts'
import { defineSignal } from './define-signal.ts'
import type { Schema } from './schema.ts'

/** The payload of an approval. */
export interface ApprovalPayload {
  readonly approved: boolean
  /** What the person says about it. */
  readonly note?: string
}

/** Fields that are not known are ignored, so that a webhook may send more. */
const PAYLOAD: Schema<ApprovalPayload> = {
  '~standard': {
    version: 1,
    vendor: 'pawl',
    validate: (value) => {
      const { approved, note } = (value ?? {}) as Partial<Record<string, unknown>>
      if (typeof approved !== 'boolean') return failed('approved', 'must be true or false')
      const why = note === undefined ? undefined : text(note as string, NOTE_MAX)
      if (why !== undefined) return failed('note', why)
      return { value: note === undefined ? { approved } : { approved, note: note as string } }
    },
  },
}

function failed(field: string, message: string) {
  return { issues: [{ message, path: [field] }] }
}

/** The signal for which `waitForApproval` waits. Declare it: `signals: [approval]`. */
export const approval = defineSignal({
  name: 'approval',
  payload: PAYLOAD,
  jsonSchema: {
    type: 'object',
    required: ['approved'],
    properties: {
      approved: { type: 'boolean', title: 'Approved' },
      note: { type: 'string', title: 'Note', maxLength: NOTE_MAX },
    },
  },
})

/** The type of `approval`. */
export type ApprovalSignal = typeof approval

/** The decision for which a handler has waited. */
export type ApprovalAnswer =
  | {
      readonly kind: 'approved' | 'rejected'
      /** Who decided, by the ledger: the operator, the caller, or the kind of the sender. */
      readonly by: string
      /** The note of the person, or the reason of the operator. */
      readonly note: string | undefined
    }
  | { readonly kind: 'timeout' }

/**
 * The key of the decision about the wait in which an attempt has ended. A second decision about the
 * same wait is not stored, so it cannot count for a later one.
 */
export function decisionKey({ attempt }: { readonly attempt: number }): string {
  return `decision/${attempt}`
}

/** Whether a text can be the name of a person in the ledger. */
export function isPerson(by: unknown): by is string {
  return typeof by === 'string' && checkName(by) === undefined
}
