// What the operations of `operations.ts` cost. Change a number only together with the change that
// causes it, and say in the commit why it had to change.

export const SQLITE_COSTS = {
  'enqueue one': { statements: 3, transactions: 1, rows: 2, pages: 6 },
  'enqueue 100': { statements: 3, transactions: 1, rows: 200, pages: 21 },
  'claim one': { statements: 5, transactions: 1, rows: 2, pages: 11 },
  'claim 100': { statements: 5, transactions: 1, rows: 200, pages: 16 },
  'heartbeat of 100': { statements: 100, transactions: 1, rows: 100, pages: 1 },
  'succeed one': { statements: 3, transactions: 1, rows: 3, pages: 8 },
  'succeed 99': { statements: 118, transactions: 1, rows: 199, pages: 21 },
  step: { statements: 3, transactions: 1, rows: 2, pages: 5 },
  'succeed after a step': { statements: 5, transactions: 1, rows: 3, pages: 8 },
  'succeed 100 and claim 100': { statements: 106, transactions: 1, rows: 401, pages: 31 },
  'commit with an effect': { statements: 5, transactions: 1, rows: 3, pages: 10 },
  'fail and retry later': { statements: 4, transactions: 1, rows: 2, pages: 6 },
  'promote the retry': { statements: 5, transactions: 1, rows: 2, pages: 6 },
} as const

export const POSTGRES_COSTS = {
  'enqueue one': { roundTrips: 3, statements: 9, rows: 2, pages: 6 },
  'enqueue 100': { roundTrips: 3, statements: 9, rows: 200, pages: 11 },
  'claim one': { roundTrips: 3, statements: 9, rows: 2, pages: 6 },
  'claim 100': { roundTrips: 3, statements: 9, rows: 200, pages: 12 },
  'heartbeat of 100': { roundTrips: 3, statements: 9, rows: 100, pages: 8 },
  'succeed one': { roundTrips: 3, statements: 9, rows: 3, pages: 8 },
  'succeed 99': { roundTrips: 3, statements: 9, rows: 199, pages: 21 },
  step: { roundTrips: 3, statements: 9, rows: 2, pages: 6 },
  'succeed after a step': { roundTrips: 7, statements: 19, rows: 3, pages: 8 },
  'succeed 100 and claim 100': { roundTrips: 3, statements: 9, rows: 401, pages: 31 },
  'commit with an effect': { roundTrips: 5, statements: 17, rows: 3, pages: 15 },
  'fail and retry later': { roundTrips: 5, statements: 11, rows: 2, pages: 7 },
  'promote the retry': { roundTrips: 5, statements: 11, rows: 2, pages: 6 },
} as const
