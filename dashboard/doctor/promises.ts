/** The promises, as README.md lists them; test/dashboard/promises.test.ts compares the two. */
export const PROMISES: readonly (readonly [string, string])[] = [
  ['P1', 'An acknowledged enqueue is never lost.'],
  [
    'P2',
    'A job is in exactly one state, and every change is an edge of its lifecycle, ' +
      'or forced or repaired by a named operator, with a fact in the same ' +
      'transaction.',
  ],
  ['P3', 'At most one execution of a job reaches COMMITTED.'],
  [
    'P4',
    'Every write by a worker is fenced by attempt, claim and lease; a stale one ' +
      'changes nothing.',
  ],
  ['P5', 'Attempts only rise; failures, crashes and releases each have a bound.'],
  ['P6', 'Ended jobs change only by operator edges; succeeded ones never change.'],
  [
    'P7',
    'If a worker dies, another one recovers its jobs within their lease and two ' + 'seconds.',
  ],
  ['P8', 'Facts are never changed, nor deleted while their job exists.'],
  ['P9', "A job's row is the fold of its facts."],
  ['P10', 'A job that is COMMITTED but not DONE is finished without repeating its commit.'],
  ['P11', 'Retries are bounded, spread, and never early.'],
  [
    'P12',
    'One idempotency key, one job, until retention removes it, or for as long as ' +
      'keys of the retention says.',
  ],
  ['P13', 'Limits hold at every instant, over all machines.'],
  ['P14', 'A finished work item is not run again, unless forced or an input changed.'],
  ['P15', 'Once faults stop, every job ends or is parked with a reason.'],
  ['P16', 'Failure is loud: a typed error with a stable code, a retry, or a non-zero exit.'],
  ['P17', 'Every tick of a schedule made exactly one job, or has a record that says why ' + 'not.'],
  ['P18', 'An acknowledged signal is received once, in order, or reported unread.'],
  [
    'P19',
    'A job starts only after everything that it waits for came out as asked; ' +
      'every chain of waits ends at a job that is live, due or parked.',
  ],
]

/** The doctor has no check of them on a store; the tests of Pawl have. */
export const BY_TESTS: readonly string[] = ['P14']
