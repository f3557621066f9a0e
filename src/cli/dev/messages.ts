/**
 * The messages between `pawl dev` and its worker process:
 *
 *   parent               child
 *   open          →      reads configuration and job files, opens the store
 *                 ←      opened, or failed; after `failed` the child exits
 *   start         →      listens and claims jobs
 *                 ←      started, or failed
 *                 ←      event, as often as something happens
 *   stop          →      stops listening, drains, exits; a second one releases jobs at once
 *                 ←      stopping, when the port is free and nothing more is claimed
 *
 * The child also stops when the parent has died: its channel is closed.
 */

export type ToChild =
  | {
      readonly kind: 'open'
      readonly options: Readonly<Record<string, unknown>>
      /** False after a failure: serve the API without job types and without a worker. */
      readonly withJobs: boolean
    }
  | { readonly kind: 'start'; readonly port: number }
  | { readonly kind: 'stop' }

/** What is known when files are loaded and the store is open. */
export interface Opened {
  readonly kind: 'opened'
  /** Without a password. */
  readonly store: string
  readonly storeFrom: string
  readonly configFile: string | undefined
  readonly jobFiles: readonly string[]
  readonly types: readonly string[]
  readonly schedules: readonly string[]
  readonly port: number
  readonly retention: boolean
}

export interface Started {
  readonly kind: 'started'
  readonly url: string
  readonly port: number
  readonly hasDashboard: boolean
  /** Undefined without job types. */
  readonly worker: string | undefined
}

export interface Failed {
  readonly kind: 'failed'
  readonly code: string
  readonly message: string
  readonly hint: string
}

export type FromChild =
  | Opened
  | Started
  | Failed
  | { readonly kind: 'stopping' }
  | {
      readonly kind: 'event'
      readonly event: string
      readonly jobId?: string
      readonly type?: string
      readonly state?: string
      readonly attempt?: number
      readonly ms?: number
      readonly text?: string
    }
