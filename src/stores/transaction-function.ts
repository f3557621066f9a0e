/**
 * A function of the user's inside a transaction of the store, the same in every store: the handle
 * that it gets, and how its time is bounded. While it runs, something is locked.
 */
import type { PawlError } from '../core/errors.ts'
import type { Environment } from '../environment/system.ts'
import { TxEnded } from './errors.ts'
import { assertOneStatement, guardHandle } from './raw-handle.ts'
import type { StoreTx } from './store.ts'

/** How long a function may take, if no lease asks for less. */
export const BOUND_MS = 5000

/** How a store lets a function into its transaction. */
export interface TxAccess {
  readonly query: StoreTx['query']
  /** The handle of the driver. */
  readonly raw: object
  /** Throws if the database has ended the transaction by itself. */
  readonly assertWhole?: () => void
  /** Lets jobs be enqueued in the transaction. */
  readonly lend: (tx: StoreTx) => Loan
}

/** The time in which jobs can be enqueued in a transaction. */
export interface Loan {
  /** Refuses further jobs. */
  end(): void
  /** Resolves when the jobs that were being enqueued are written; it never rejects. */
  idle?(): Promise<unknown>
  /** Refuses further statements, also those of jobs that are being enqueued. */
  cut?(): void
}

/** The function, and what bounds it. */
export interface BoundedFunction<X extends StoreTx, T> {
  readonly boundMs: number
  readonly tooSlow: () => PawlError
  /** Adds to the handle; what it adds must call `assertOpen` first. */
  readonly extend: (tx: StoreTx, assertOpen: () => void) => X
  readonly work: (tx: X) => T | Promise<T>
}

/** Runs the function; throws `tooSlow()` past its bound. Later calls of its handle are refused. */
export async function runBounded<X extends StoreTx, T>(
  { clock, timers }: Pick<Environment, 'clock' | 'timers'>,
  access: TxAccess,
  { boundMs, tooSlow, extend, work }: BoundedFunction<X, T>,
): Promise<T> {
  const { tx, close, loan } = openTx(access, extend)
  const start = clock.now()
  let expire: (error: PawlError) => void = () => {}
  const expired = new Promise<never>((_, reject) => {
    expire = reject
  })
  const timer = timers.after(boundMs, () => expire(tooSlow()))
  try {
    const result = await Promise.race([finished(() => work(tx)), expired])
    // A function that never waits leaves no turn to the timer.
    if (clock.now() - start > boundMs) throw tooSlow()
    access.assertWhole?.()
    return result
  } finally {
    close()
    loan.cut?.()
    timer.cancel()
  }

  /** The statements of an enqueue that the function did not await must not follow the COMMIT. */
  async function finished(run: () => T | Promise<T>): Promise<T> {
    try {
      return await run()
    } finally {
      close()
      if (loan.idle !== undefined) await loan.idle()
    }
  }
}

/** The handle, and how to end it: later calls are refused instead of written elsewhere. */
function openTx<X extends StoreTx>(
  { query, raw, assertWhole, lend }: TxAccess,
  extend: BoundedFunction<X, unknown>['extend'],
): { tx: X; close: () => void; loan: Loan } {
  let open = true
  const assertOpen = () => {
    if (!open) throw new TxEnded()
    assertWhole?.()
  }
  const plain: StoreTx = {
    raw: guardHandle(raw, assertOpen),
    async query(sql, values) {
      assertOpen()
      assertOneStatement(sql)
      return query(sql, values)
    },
  }
  const tx = extend(plain, assertOpen)
  const loan = lend(tx)
  return {
    tx,
    loan,
    close() {
      open = false
      loan.end()
    },
  }
}
