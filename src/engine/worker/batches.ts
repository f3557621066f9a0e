/** The largest number of batches in a row. */
const BATCHES_MAX = 100

/** Repeats a batch operation until it processes less than a full batch. */
export async function untilShort(
  limit: number,
  doBatch: (limit: number) => Promise<number>,
): Promise<void> {
  for (let batch = 0; batch < BATCHES_MAX; batch++) if ((await doBatch(limit)) < limit) return
}
