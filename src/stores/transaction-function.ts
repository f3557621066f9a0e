/**
 * A function of the user inside a transaction of the store, the same in every store: the handle
 * that it gets, and the bound of its time. While it runs, the file or rows are locked.
 */
import type { PawlError } from '../core/errors.ts'
import type { Environment } from '../environment/system.ts'
import type { StoreTx } from './contract/store.ts'
import { TxEnded } from './errors.ts'
import { assertOneStatement, guardHandle } from './raw-handle.ts'
import { type BoundStatement, bindStatement, type Dialect } from './user-sql.ts'

/** How long a function may take, if no lease asks for less. */
export const BOUND_MS = 5000

/** How a function reaches the transaction of a store. */
export interface TxAccess {
  readonly dialect: Dialect
  /** Runs one statement, whose values are converted. */
  readonly run: (statement: BoundStatement) => Promise<unknown[]>
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
    // A function that never awaits keeps the timer from running.
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
  { dialect, run, raw, assertWhole, lend }: TxAccess,
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
      const statement = bindStatement(sql, values, dialect)
      assertOneStatement(statement.text)
      return run(statement)
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
