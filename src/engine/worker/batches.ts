/** How many batches are done in a row. */
const BATCHES_MAX = 100

/** Repeats what does a batch at a time until there is less than a batch to do, within bounds. */
export async function untilShort(
  limit: number,
  doBatch: (limit: number) => Promise<number>,
): Promise<void> {
  for (let batch = 0; batch < BATCHES_MAX; batch++) if ((await doBatch(limit)) < limit) return
}
