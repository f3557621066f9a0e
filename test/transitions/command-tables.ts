// What every command does to a job in every situation, for each lifecycle, typed by hand from the
// rules. Rows are commands, columns are situations (`situations.ts` brings about both).
//
//   →x→y    the edges taken, by the letters of the lifecycle; the first state is the column's
//   note    a fact without an edge
//   same    nothing to do, and the answer says so
//   no      E_TRANSITION_INVALID   unsup   E_UNSUPPORTED   stale   E_STALE_FENCE
//   comm    E_COMMITTED            ended   E_JOB_ENDED     live    E_LEASE_LIVE
//   early   E_NOT_DUE              park    E_JOB_PARKED    ran     E_JOB_STARTED

/** One lifecycle's table, with the letters that stand for its states. */
export interface CommandTable {
  readonly lifecycle: string
  readonly letters: Readonly<Record<string, string>>
  /** How often a job may fail and crash and be given back before the next time is too often. */
  readonly budgets: { readonly failures: number; readonly crashes: number }
  /** The state that `force aside` aims at: where the lifecycle puts what nobody will finish. */
  readonly aside: string
  readonly rows: string
}

const standard: CommandTable = {
  lifecycle: 'standard',
  letters: {
    created: 'c',
    scheduled: 's',
    queued: 'q',
    running: 'r',
    retrying: 't',
    waiting: 'w',
    succeeded: 'S',
    failed: 'F',
    quarantined: 'Q',
    cancelled: 'C',
  },
  budgets: { failures: 3, crashes: 3 },
  aside: 'failed',
  rows: `
                      | held  sched queued leased begun retry waits commit succ  failed quar  canc
    submit            | →q    no    same   no     no    no    no    comm   comm  no     no    no
    schedule          | →s    note  no     no     no    no    no    comm   comm  no     no    no
    schedule, past    | →q    →q    same   no     no    no    no    comm   comm  no     no    no
    due               | no    early same   no     no    early early comm   comm  no     no    no
    due, time over    | no    →q    same   no     no    →q    →q    comm   comm  no     no    no
    reschedule later  | no    note  →s     no     no    →s    no    comm   comm  ended  no    ended
    reschedule to now | no    →q    same   no     no    →q    no    comm   comm  ended  no    ended
    prioritise        | note  note  note   note   note  note  note  comm   comm  ended  note  ended
    replace           | note  note  note   ran    ran   ran   ran   comm   comm  ended  ran   ended
    signal            | note  note  note   note   note  note  →q    comm   ended ended  note  ended
    signal, other     | note  note  note   note   note  note  note  comm   ended ended  note  ended
    signal, known     | same  same  same   same   same  same  same  same   same  same   same  same
    arrive            | same  same  same   same   same  same  same  comm   comm  same   same  same
    arrive, one open  | same  same  same   same   same  same  same  comm   comm  same   same  same
    arrive, failed    | same  same  same   same   same  same  same  comm   comm  same   same  same
    exhaust           | unsup unsup unsup  unsup  unsup unsup unsup comm   comm  unsup  unsup unsup
    claim             | no    no    →r     stale  stale no    no    comm   comm  no     no    no
    start             | stale stale stale  note   same  stale stale comm   comm  stale  stale stale
    step              | stale stale stale  no     note  stale stale comm   comm  stale  stale stale
    commit            | stale stale stale  no     →S    stale stale same   same  stale  stale stale
    commit, effects   | stale stale stale  no     note  stale stale same   same  stale  stale stale
    done              | stale stale stale  stale  stale stale stale →S     same  stale  stale stale
    fail, retryable   | stale stale stale  →t     →t    stale stale comm   comm  stale  stale stale
    fail, terminal    | stale stale stale  →F     →F    stale stale comm   comm  stale  stale stale
    fail, bad input   | stale stale stale  →Q     →Q    stale stale comm   comm  stale  stale stale
    fail, spent       | stale stale stale  →Q     →Q    stale stale comm   comm  stale  stale stale
    release           | stale stale stale  →q     →q    stale stale comm   comm  stale  stale stale
    release, spent    | stale stale stale  →t     →t    stale stale comm   comm  stale  stale stale
    suspend           | stale stale stale  →s     →s    stale stale comm   comm  stale  stale stale
    wait              | stale stale stale  →w     →w    stale stale comm   comm  stale  stale stale
    wait, time over   | stale stale stale  note   note  stale stale comm   comm  stale  stale stale
    wait, signal sent | stale stale stale  note   note  stale stale comm   comm  stale  stale stale
    wait, known       | stale stale stale  same   same  stale stale comm   comm  stale  stale stale
    expire too early  | stale stale stale  live   live  stale stale comm   comm  stale  stale stale
    expire            | stale stale stale  →q     →t    stale stale comm   comm  stale  stale stale
    expire, spent     | stale stale stale  →q     →Q    stale stale comm   comm  stale  stale stale
    cancel            | →C    →C    →C     →C     →C    →C    →C    comm   comm  no     →C    same
    cancel by holder  | stale stale stale  →C     →C    stale stale comm   comm  stale  stale stale
    park              | →Q    →Q    →Q     →Q     →Q    →Q    →Q    comm   comm  no     same  no
    redrive           | no    no    same   no     no    no    no    note   comm  →q     →q    no
    redrive, arrived  | no    no    same   no     no    no    no    note   comm  →q     →q    no
    discard           | no    no    no     no     no    no    no    comm   comm  same   →F    no
    force to ready    | →q    →q    same   →q     →q    →q    →q    comm   comm  ended  →q    ended
    force aside       | →F    →F    →F     →F     →F    →F    →F    comm   comm  ended  →F    ended
    force to held     | no    no    no     same   same  no    no    comm   comm  ended  no    ended
    force to success  | no    no    no     no     no    no    no    comm   comm  ended  no    ended
    force to nowhere  | no    no    no     no     no    no    no    comm   comm  ended  no    ended
    repair            | note  note  note   note   note  note  note  note   note  note   note  note
    repair to ready   | →q    →q    same   →q     →q    →q    →q    comm   comm  ended  →q    ended
    repair to held    | no    no    no     same   same  no    no    comm   comm  ended  no    ended
  `,
}

const hardened: CommandTable = {
  lifecycle: 'hardened',
  letters: { pending: 'p', running: 'r', succeeded: 'S', failed: 'F', quarantined: 'Q' },
  budgets: { failures: 3, crashes: 3 },
  aside: 'quarantined',
  rows: `
                      | pending delayed leased begun failed commit succ  quar
    submit            | unsup   unsup   unsup  unsup unsup  comm   comm  unsup
    schedule          | unsup   unsup   unsup  unsup unsup  comm   comm  unsup
    schedule, past    | unsup   unsup   unsup  unsup unsup  comm   comm  unsup
    due               | same    early   no     no    early  comm   comm  no
    due, time over    | same    same    no     no    →p     comm   comm  no
    reschedule later  | note    note    no     no    note   comm   comm  no
    reschedule to now | same    note    no     no    →p     comm   comm  no
    prioritise        | note    note    note   note  note   comm   comm  note
    replace           | note    note    ran    ran   ran    comm   comm  ran
    signal            | unsup   unsup   unsup  unsup unsup  unsup  unsup unsup
    signal, other     | unsup   unsup   unsup  unsup unsup  unsup  unsup unsup
    signal, known     | unsup   unsup   unsup  unsup unsup  unsup  unsup unsup
    arrive            | same    same    same   same  same   comm   comm  same
    arrive, one open  | same    same    same   same  same   comm   comm  same
    arrive, failed    | same    same    same   same  same   comm   comm  same
    exhaust           | unsup   unsup   unsup  unsup unsup  comm   comm  unsup
    claim             | →r      early   stale  stale no     comm   comm  no
    start             | stale   stale   note   same  stale  comm   comm  stale
    step              | stale   stale   no     note  stale  comm   comm  stale
    commit            | stale   stale   no     →S    stale  same   same  stale
    commit, effects   | stale   stale   no     note  stale  same   same  stale
    done              | stale   stale   stale  stale stale  →S     same  stale
    fail, retryable   | stale   stale   →F     →F    stale  comm   comm  stale
    fail, terminal    | stale   stale   →F→Q   →F→Q  stale  comm   comm  stale
    fail, bad input   | stale   stale   →F→Q   →F→Q  stale  comm   comm  stale
    fail, spent       | stale   stale   →F→Q   →F→Q  stale  comm   comm  stale
    release           | stale   stale   →F→p   →F→p  stale  comm   comm  stale
    release, spent    | stale   stale   →F→p   →F→p  stale  comm   comm  stale
    suspend           | stale   stale   unsup  unsup stale  comm   comm  stale
    wait              | stale   stale   unsup  unsup stale  comm   comm  stale
    wait, time over   | stale   stale   unsup  unsup stale  comm   comm  stale
    wait, signal sent | stale   stale   unsup  unsup stale  comm   comm  stale
    wait, known       | stale   stale   unsup  unsup stale  comm   comm  stale
    expire too early  | stale   stale   live   live  stale  comm   comm  stale
    expire            | stale   stale   →F→p   →F→p  stale  comm   comm  stale
    expire, spent     | stale   stale   →F→p   →F→Q  stale  comm   comm  stale
    cancel            | →r→F→Q  →r→F→Q  →F→Q   →F→Q  →Q     comm   comm  same
    cancel by holder  | stale   stale   →F→Q   →F→Q  stale  comm   comm  stale
    park              | →r→F→Q  →r→F→Q  →F→Q   →F→Q  →Q     comm   comm  same
    redrive           | same    same    no     no    no     note   comm  →p
    redrive, arrived  | same    same    no     no    no     note   comm  →p
    discard           | unsup   unsup   unsup  unsup unsup  comm   comm  unsup
    force to ready    | same    same    →p     →p    →p     comm   comm  →p
    force aside       | →Q      →Q      →Q     →Q    →Q     comm   comm  same
    force to held     | no      no      same   same  no     comm   comm  no
    force to success  | no      no      no     no    no     comm   comm  no
    force to nowhere  | no      no      no     no    no     comm   comm  no
    repair            | note    note    note   note  note   note   note  note
    repair to ready   | same    same    →p     →p    →p     comm   comm  →p
    repair to held    | no      no      same   same  no     comm   comm  no
  `,
}

const leased: CommandTable = {
  lifecycle: 'leased',
  letters: { PENDING: 'p', RUNNING: 'r', SUCCEEDED: 'S', FAILED: 'F' },
  budgets: { failures: 3, crashes: 3 },
  aside: 'FAILED',
  rows: `
                      | pending delayed parked leased begun commit succ  failed
    submit            | unsup   unsup   unsup  unsup  unsup comm   comm  unsup
    schedule          | unsup   unsup   unsup  unsup  unsup comm   comm  unsup
    schedule, past    | unsup   unsup   unsup  unsup  unsup comm   comm  unsup
    due               | same    early   park   unsup  unsup comm   comm  unsup
    due, time over    | same    same    park   unsup  unsup comm   comm  unsup
    reschedule later  | note    note    note   no     no    comm   comm  ended
    reschedule to now | same    note    same   no     no    comm   comm  ended
    prioritise        | note    note    note   note   note  comm   comm  ended
    replace           | note    note    note   ran    ran   comm   comm  ended
    signal            | unsup   unsup   unsup  unsup  unsup unsup  unsup unsup
    signal, other     | unsup   unsup   unsup  unsup  unsup unsup  unsup unsup
    signal, known     | unsup   unsup   unsup  unsup  unsup unsup  unsup unsup
    arrive            | same    same    same   same   same  comm   comm  same
    arrive, one open  | same    same    same   same   same  comm   comm  same
    arrive, failed    | same    same    same   same   same  comm   comm  same
    exhaust           | unsup   unsup   unsup  unsup  unsup comm   comm  unsup
    claim             | →r      early   park   stale  stale comm   comm  no
    start             | stale   stale   stale  note   same  comm   comm  stale
    step              | stale   stale   stale  no     note  comm   comm  stale
    commit            | stale   stale   stale  no     →S    same   same  stale
    commit, effects   | stale   stale   stale  no     note  same   same  stale
    done              | stale   stale   stale  stale  stale →S     same  stale
    fail, retryable   | stale   stale   stale  →p     →p    comm   comm  stale
    fail, terminal    | stale   stale   stale  →F     →F    comm   comm  stale
    fail, bad input   | stale   stale   stale  →F     →F    comm   comm  stale
    fail, spent       | stale   stale   stale  →F     →F    comm   comm  stale
    release           | stale   stale   stale  →p     →p    comm   comm  stale
    release, spent    | stale   stale   stale  →p     →p    comm   comm  stale
    suspend           | stale   stale   stale  unsup  unsup comm   comm  stale
    wait              | stale   stale   stale  unsup  unsup comm   comm  stale
    wait, time over   | stale   stale   stale  unsup  unsup comm   comm  stale
    wait, signal sent | stale   stale   stale  unsup  unsup comm   comm  stale
    wait, known       | stale   stale   stale  unsup  unsup comm   comm  stale
    expire too early  | stale   stale   stale  live   live  comm   comm  stale
    expire            | stale   stale   stale  →p     →p    comm   comm  stale
    expire, spent     | stale   stale   stale  →p     →F    comm   comm  stale
    cancel            | →r→F    →r→F    →r→F   →F     →F    comm   comm  same
    cancel by holder  | stale   stale   stale  →F     →F    comm   comm  stale
    park              | note    note    same   →p     →p    comm   comm  ended
    redrive           | unsup   unsup   note   unsup  unsup note   comm  unsup
    redrive, arrived  | unsup   unsup   note   unsup  unsup note   comm  unsup
    discard           | unsup   unsup   unsup  unsup  unsup comm   comm  unsup
    force to ready    | same    same    same   →p     →p    comm   comm  ended
    force aside       | →F      →F      →F     →F     →F    comm   comm  ended
    force to held     | no      no      no     same   same  comm   comm  ended
    force to success  | no      no      no     no     no    comm   comm  ended
    force to nowhere  | no      no      no     no     no    comm   comm  ended
    repair            | note    note    note   note   note  note   note  note
    repair to ready   | same    same    same   →p     →p    comm   comm  ended
    repair to held    | no      no      no     same   same  comm   comm  ended
  `,
}

/** The last three columns are jobs that were parked while delayed, queued and retrying. */
const document: CommandTable = {
  lifecycle: 'document',
  letters: {
    CREATED: 'c',
    QUEUED: 'q',
    RUNNING: 'r',
    RETRYING: 't',
    SUCCEEDED: 'S',
    FAILED: 'F',
  },
  budgets: { failures: 3, crashes: 3 },
  aside: 'FAILED',
  rows: `
                      | held  later queued leased begun retry commit succ  failed parkC parkQ parkT
    submit            | →q    →q    same   no     no    no    comm   comm  no     park  same  no
    schedule          | note  note  no     no     no    no    comm   comm  no     note  no    no
    schedule, past    | →q    →q    same   no     no    no    comm   comm  no     park  same  no
    due               | early early same   no     no    early comm   comm  no     park  park  park
    due, time over    | early →q    same   no     no    →q    comm   comm  no     park  park  park
    reschedule later  | no    note  note   no     no    unsup comm   comm  ended  note  note  unsup
    reschedule to now | no    →q    same   no     no    unsup comm   comm  ended  park  same  unsup
    prioritise        | note  note  note   note   note  note  comm   comm  ended  note  note  note
    replace           | note  note  note   ran    ran   ran   comm   comm  ended  note  note  ran
    signal            | unsup unsup unsup  unsup  unsup unsup unsup  unsup unsup  unsup unsup unsup
    signal, other     | unsup unsup unsup  unsup  unsup unsup unsup  unsup unsup  unsup unsup unsup
    signal, known     | unsup unsup unsup  unsup  unsup unsup unsup  unsup unsup  unsup unsup unsup
    arrive            | same  same  same   same   same  same  comm   comm  same   same  same  same
    arrive, one open  | same  same  same   same   same  same  comm   comm  same   same  same  same
    arrive, failed    | same  same  same   same   same  same  comm   comm  same   same  same  same
    exhaust           | no    no    →F     no     no    no    comm   comm  same   no    park  no
    claim             | no    no    →r     stale  stale no    comm   comm  no     no    park  no
    start             | stale stale stale  note   same  stale comm   comm  stale  stale stale stale
    step              | stale stale stale  no     note  stale comm   comm  stale  stale stale stale
    commit            | stale stale stale  no     →S    stale same   same  stale  stale stale stale
    commit, effects   | stale stale stale  no     note  stale same   same  stale  stale stale stale
    done              | stale stale stale  stale  stale stale →S     same  stale  stale stale stale
    fail, retryable   | stale stale stale  →t     →t    stale comm   comm  stale  stale stale stale
    fail, terminal    | stale stale stale  →F     →F    stale comm   comm  stale  stale stale stale
    fail, bad input   | stale stale stale  →F     →F    stale comm   comm  stale  stale stale stale
    fail, spent       | stale stale stale  →F     →F    stale comm   comm  stale  stale stale stale
    release           | stale stale stale  →t→q   →t→q  stale comm   comm  stale  stale stale stale
    release, spent    | stale stale stale  →t     →t    stale comm   comm  stale  stale stale stale
    suspend           | stale stale stale  unsup  unsup stale comm   comm  stale  stale stale stale
    wait              | stale stale stale  unsup  unsup stale comm   comm  stale  stale stale stale
    wait, time over   | stale stale stale  unsup  unsup stale comm   comm  stale  stale stale stale
    wait, signal sent | stale stale stale  unsup  unsup stale comm   comm  stale  stale stale stale
    wait, known       | stale stale stale  unsup  unsup stale comm   comm  stale  stale stale stale
    expire too early  | stale stale stale  live   live  stale comm   comm  stale  stale stale stale
    expire            | stale stale stale  →t→q   →t    stale comm   comm  stale  stale stale stale
    expire, spent     | stale stale stale  →t→q   →F    stale comm   comm  stale  stale stale stale
    cancel            | →q→F  →q→F  →F     →F     →F    →q→F  comm   comm  same   →q→F  →F    →q→F
    cancel by holder  | stale stale stale  →F     →F    stale comm   comm  stale  stale stale stale
    park              | note  note  note   →t→q   →t→q  note  comm   comm  ended  same  same  same
    redrive           | unsup unsup unsup  unsup  unsup unsup note   comm  unsup  note  note  note
    redrive, arrived  | unsup unsup unsup  unsup  unsup unsup note   comm  unsup  note  note  note
    discard           | unsup unsup unsup  unsup  unsup unsup comm   comm  unsup  unsup unsup unsup
    force to ready    | →q    →q    same   →q     →q    →q    comm   comm  ended  →q    same  →q
    force aside       | →F    →F    →F     →F     →F    →F    comm   comm  ended  →F    →F    →F
    force to held     | no    no    no     same   same  no    comm   comm  ended  no    no    no
    force to success  | no    no    no     no     no    no    comm   comm  ended  no    no    no
    force to nowhere  | no    no    no     no     no    no    comm   comm  ended  no    no    no
    repair            | note  note  note   note   note  note  note   note  note   note  note  note
    repair to ready   | →q    →q    same   →q     →q    →q    comm   comm  ended  →q    same  →q
    repair to held    | no    no    no     same   same  no    comm   comm  ended  no    no    no
  `,
}

const task: CommandTable = {
  lifecycle: 'task',
  letters: { pending: 'p', running: 'r', done: 'D', error: 'E' },
  // An exception is final, and max_tries 3 grants two recoveries.
  budgets: { failures: 0, crashes: 2 },
  aside: 'error',
  rows: `
                      | pending delayed parked leased begun commit done  error
    submit            | unsup   unsup   unsup  unsup  unsup comm   comm  unsup
    schedule          | unsup   unsup   unsup  unsup  unsup comm   comm  unsup
    schedule, past    | unsup   unsup   unsup  unsup  unsup comm   comm  unsup
    due               | same    early   park   unsup  unsup comm   comm  unsup
    due, time over    | same    same    park   unsup  unsup comm   comm  unsup
    reschedule later  | note    note    note   no     no    comm   comm  ended
    reschedule to now | same    note    same   no     no    comm   comm  ended
    prioritise        | note    note    note   note   note  comm   comm  ended
    replace           | note    note    ran    ran    ran   comm   comm  ended
    signal            | unsup   unsup   unsup  unsup  unsup unsup  unsup unsup
    signal, other     | unsup   unsup   unsup  unsup  unsup unsup  unsup unsup
    signal, known     | unsup   unsup   unsup  unsup  unsup unsup  unsup unsup
    arrive            | same    same    same   same   same  comm   comm  same
    arrive, one open  | same    same    same   same   same  comm   comm  same
    arrive, failed    | same    same    same   same   same  comm   comm  same
    exhaust           | unsup   unsup   unsup  unsup  unsup comm   comm  unsup
    claim             | →r      early   park   stale  stale comm   comm  no
    start             | stale   stale   stale  note   same  comm   comm  stale
    step              | stale   stale   stale  no     note  comm   comm  stale
    commit            | stale   stale   stale  no     →D    same   same  stale
    commit, effects   | stale   stale   stale  no     note  same   same  stale
    done              | stale   stale   stale  stale  stale →D     same  stale
    fail, retryable   | stale   stale   stale  →E     →E    comm   comm  stale
    fail, terminal    | stale   stale   stale  →E     →E    comm   comm  stale
    fail, bad input   | stale   stale   stale  →E     →E    comm   comm  stale
    fail, spent       | stale   stale   stale  →E     →E    comm   comm  stale
    release           | stale   stale   stale  →p     →p    comm   comm  stale
    release, spent    | stale   stale   stale  →p     →p    comm   comm  stale
    suspend           | stale   stale   stale  unsup  unsup comm   comm  stale
    wait              | stale   stale   stale  unsup  unsup comm   comm  stale
    wait, time over   | stale   stale   stale  unsup  unsup comm   comm  stale
    wait, signal sent | stale   stale   stale  unsup  unsup comm   comm  stale
    wait, known       | stale   stale   stale  unsup  unsup comm   comm  stale
    expire too early  | stale   stale   stale  live   live  comm   comm  stale
    expire            | stale   stale   stale  →p     →p    comm   comm  stale
    expire, spent     | stale   stale   stale  →p     →E    comm   comm  stale
    cancel            | →r→E    →r→E    →r→E   →E     →E    comm   comm  same
    cancel by holder  | stale   stale   stale  →E     →E    comm   comm  stale
    park              | note    note    same   →p     →p    comm   comm  ended
    redrive           | same    same    note   no     no    note   comm  →p
    redrive, arrived  | same    same    note   no     no    note   comm  →p
    discard           | unsup   unsup   unsup  unsup  unsup comm   comm  unsup
    force to ready    | same    same    same   →p     →p    comm   comm  ended
    force aside       | →E      →E      →E     →E     →E    comm   comm  ended
    force to held     | no      no      no     same   same  comm   comm  ended
    force to success  | no      no      no     no     no    comm   comm  ended
    force to nowhere  | no      no      no     no     no    comm   comm  ended
    repair            | note    note    note   note   note  note   note  note
    repair to ready   | same    same    same   →p     →p    comm   comm  ended
    repair to held    | no      no      no     same   same  comm   comm  ended
  `,
}

/** One table per lifecycle that ships. */
export const COMMAND_TABLES: readonly CommandTable[] = [standard, hardened, leased, document, task]
