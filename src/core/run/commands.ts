/** The commands for a run. `decide.ts` decides each of them. */

export type RunCommand =
  | { readonly kind: 'create'; readonly maxFixAttempts?: number }
  | { readonly kind: 'move'; readonly to: string }
  | {
      readonly kind: 'write-artifact'
      readonly name: string
      readonly path: string
      readonly sha256: string
      readonly schemaId?: string
      readonly worker: string
      readonly workItem?: string
    }
  /** The file has another hash than its artifact. Everything that depends on it becomes stale. */
  | { readonly kind: 'invalidate-artifact'; readonly name: string }
  /** The inputs turned out to be unchanged. */
  | { readonly kind: 'revalidate-artifact'; readonly name: string }
  | {
      readonly kind: 'start-item'
      readonly key: string
      readonly inputs: Readonly<Record<string, string>>
      readonly code?: string
      readonly worker: string
      readonly forced?: boolean
    }
  /** `inputs` are what the item read while it ran, in addition to what it declared. */
  | {
      readonly kind: 'finish-item'
      readonly key: string
      readonly inputs?: Readonly<Record<string, string>>
    }
  | { readonly kind: 'fail-item'; readonly key: string; readonly error: string }
  | { readonly kind: 'change-section'; readonly section: string; readonly to: string }
  | { readonly kind: 'record-validation'; readonly ok: boolean }
  /** The work of the current fix has run. Counts once for each visit of the fixing state. */
  | { readonly kind: 'count-fix' }
  /** An input changed, so the run gets all its fix attempts again. */
  | { readonly kind: 'reset-fixes'; readonly because: string }
  | {
      readonly kind: 'open-issue'
      readonly issue: string
      readonly severity: 'blocker' | 'error' | 'warning'
      readonly message: string
    }
  | { readonly kind: 'resolve-issue'; readonly issue: string }
  /** On resume from a transitional state, or (`stale`) because an input changed. */
  | { readonly kind: 'rewind'; readonly reason: 'resume' }
  | { readonly kind: 'rewind'; readonly reason: 'stale'; readonly to: string }
  | { readonly kind: 'discard-tail'; readonly bytes: number; readonly sha256: string }
  | { readonly kind: 'link-commit'; readonly sha: string }
  | { readonly kind: 'fail'; readonly reason: string }
  | { readonly kind: 'cancel'; readonly reason: string }
