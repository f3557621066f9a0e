/**
 * The job types of the shop. The web process imports only this file: it can enqueue the jobs, and
 * does not load the code that runs them.
 */
import { defineJob, typed } from 'pawl'

/** Takes the money for an order. */
export const charge = defineJob({
  name: 'charge',
  queue: 'payments',
  input: typed<{ order: string }>(),
  output: typed<{ charge: string }>(),
  retry: { max: 8, delay: '100ms', backoff: 'exponential' },
})

/** Draws the picture of a receipt. It computes for a while and blocks its process meanwhile. */
export const render = defineJob({
  name: 'render',
  queue: 'files',
  input: typed<{ order: string }>(),
  output: typed<{ file: string }>(),
})

/** Reads a file with one product per line, and enqueues a `stock` job for every 500 of them. */
export const importProducts = defineJob({
  name: 'import-products',
  queue: 'imports',
  input: typed<{ file: string }>(),
  output: typed<{ products: number }>(),
})

/** Writes some products. */
export const stock = defineJob({
  name: 'stock',
  queue: 'imports',
  input: typed<{ products: { sku: string; name: string }[] }>(),
})
