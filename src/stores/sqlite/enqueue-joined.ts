/** Enqueues jobs in a transaction that the caller, or a function of the caller, has opened. */
import { CLIENT } from '../asker.ts'
import type { Enqueued, EnqueueItem, EnqueueOptions } from '../store.ts'
import { typed } from './busy.ts'
import type { Connection } from './connect.ts'
import type { Shared } from './context.ts'
import { enqueue } from './enqueue.ts'
import { endOf, joinTransaction } from './join.ts'

/** The jobs are durable when the transaction commits. `own` is the store's own connection. */
export function enqueueJoined(
  shared: Shared,
  own: Connection,
  items: readonly EnqueueItem[],
  { asker = CLIENT, tx, onJoined }: EnqueueOptions,
): Enqueued[] {
  const connection = joinTransaction(tx, own)
  return typed(() => {
    shared.clock.refresh(connection)
    const [answers] = enqueue(shared, connection, shared.clock.now(), [{ items, asker }])
    onJoined?.(endOf(tx as object, connection))
    return answers as Enqueued[]
  })
}
