// A benchmark compares like with like: the hand-written loops write the same rows as the stores. It
// refuses to measure where they do not, which nobody would notice between two measurements.
import { it } from 'vitest'
import { assertSameRows as assertSameOnPostgres } from '../bench/postgres-stores.ts'
import { assertSameRows } from '../bench/stores.ts'
import { sharedPostgres } from './support/postgres/databases.ts'

it('the loop on SQLite writes the rows of the store', assertSameRows)

it('the loop on PostgreSQL writes the rows of the store', () =>
  assertSameOnPostgres(sharedPostgres()))
