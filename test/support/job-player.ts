/**
 * Plays one job at random, move by move: each move looks at where the job stands and chooses a
 * command, its fence and the time at which it is told. All choices come from the seed of the move,
 * so the same moves always make the same history. `random-history.ts` is the door to it.
 */
import type { Job, Lifecycle } from 'pawl'
import {
  type Command,
  type CommandKind,
  type Context,
  type Decision,
  type Failure,
  type Fence,
  type JobPolicy,
  type JobTrigger,
  pathOf,
} from 'pawl/rules'
import type { Random } from 'pawl/testing'
import {
  JobScript,
  ManualClock,
  type ScriptRequester,
  SeededRandom,
  SequentialIds,
} from 'pawl/testing'
import type { CreateCommand } from '../../src/core/job/commands.ts'
import type { After, Look, NodeRange } from '../../src/core/job/links.ts'
import { isWaiter } from '../../src/core/job/links.ts'
import type { Wait } from '../../src/core/job/waits.ts'

/** How a command was chosen. */
export type Mode = 'fitting' | 'any' | 'again' | 'late'

/** One command, and everything around it. */
export interface Told {
  readonly mode: Mode
  readonly command: Command
  readonly context: Context
  readonly before: Job | null
  readonly answer: Decision
  readonly after: Job | null
}

/** One step of the player. */
export interface Move {
  readonly mode: Mode
  readonly seed: number
}

/** Every command, so that none is forgotten: the type asks for each of them. */
const KINDS: Record<CommandKind, true> = {
  create: true,
  submit: true,
  schedule: true,
  due: true,
  reschedule: true,
  prioritise: true,
  replace: true,
  exhaust: true,
  claim: true,
  start: true,
  step: true,
  commit: true,
  done: true,
  fail: true,
  release: true,
  suspend: true,
  signal: true,
  arrive: true,
  wait: true,
  expire: true,
  cancel: true,
  park: true,
  redrive: true,
  discard: true,
  force: true,
  repair: true,
}

/** Every command that the player may tell. */
export const COMMAND_KINDS = Object.keys(KINDS) as readonly CommandKind[]

const FOREIGN_CLAIM = '99999999-0000-7000-8000-000000000000'
const STEPS = ['fetch', 'render']

/** Random numbers of which the last can be read again, so that a context can be kept. */
class KeptRandom implements Random {
  last = 0
  readonly #source: SeededRandom

  constructor(seed: number) {
    this.#source = new SeededRandom(seed)
  }

  next(): number {
    this.last = this.#source.next()
    return this.last
  }
}

/** A command with a weight; it is made only when it is chosen, since making it may move time. */
type Choice = readonly [weight: number, make: () => Command]

/** One job, and the moves that were made with it. */
export class Player {
  readonly script: JobScript
  readonly told: Told[] = []
  readonly #policy: JobPolicy | null
  readonly #random: KeptRandom
  readonly #ids = new SequentialIds()
  readonly #jobId = this.#ids.next()
  /** The fences of all attempts so far, the present one included. */
  readonly #fences: Fence[] = []
  #job: Job | null = null
  #dice = new SeededRandom(0)

  constructor(lifecycle: Lifecycle, policy: JobPolicy | null, seed: number) {
    this.#policy = policy
    this.#random = new KeptRandom(seed)
    this.script = new JobScript(lifecycle, { clock: new ManualClock(), random: this.#random })
  }

  /** Whether nothing can change the job any more. */
  get isOver(): boolean {
    if (this.#job === null || this.#job.outcome === null) return false
    return pathOf(this.script.lifecycle, this.#job.state, 'redrive') === undefined
  }

  make({ mode, seed }: Move): void {
    this.#dice = new SeededRandom(seed)
    const earlier = this.told[this.#roll(this.told.length)]
    if (mode === 'fitting') {
      this.#tell(mode, this.#choose(this.#fitting()))
    } else if (mode === 'late') {
      const fence = this.#fences[this.#roll(this.#fences.length)]
      this.#tell(mode, this.#any(fence, this.#oneOf(LATE_KINDS)))
    } else if (mode === 'again' && earlier !== undefined) {
      this.#tell(mode, earlier.command, this.#chance(0.5) ? earlier.context : undefined)
    } else {
      this.#wait(this.#oneOf([0, 0, 1, 999, 1000, 30_000, 60_000]))
      this.#tell(mode, this.#any())
    }
  }

  #tell(mode: Mode, asked: Command, who?: ScriptRequester): void {
    const command = this.script.complete(asked)
    const before = this.#job
    const { actor, operator, note, metadata } = who ?? requesterOf(command)
    const requester: ScriptRequester = {
      ...(actor !== undefined && { actor }),
      ...(operator !== undefined && { operator }),
      ...(note !== undefined && { note }),
      ...(metadata !== undefined && { metadata }),
    }
    const now = this.script.clock.now()
    const answer = this.script.applyCommand(command, requester)
    const context: Context = { actor: 'client', ...requester, now, random: this.#random.last }
    if (answer.kind === 'fact') this.#job = this.script.job
    if (answer.kind === 'fact' && command.kind === 'claim') {
      this.#fences.push({ attempt: this.script.job.attempt, claim: command.claim })
    }
    this.told.push({ mode, command, context, before, answer, after: this.#job })
  }

  /** What makes sense now, by where the job stands. */
  #fitting(): Choice[] {
    const job = this.#job
    if (job === null) return [[1, () => this.#create()]]
    if (job.outcome !== null) return this.#whenEnded()
    if (job.execution !== null) return this.#whenHeld(job, job.execution.status)
    if (job.blockedReason !== null) {
      return [
        [4, () => ({ kind: 'redrive' })],
        [isWaiter(job) ? 6 : 0, () => ({ kind: 'arrive', look: this.#anyLook() })],
        ...this.#whenever(),
      ]
    }
    if (isWaiter(job)) {
      return [[6, () => ({ kind: 'arrive', look: this.#anyLook() })], ...this.#whenever()]
    }
    const { roles } = this.script.lifecycle
    switch (roles.get(job.state)) {
      case 'ready':
        return [
          [16, () => this.#claim(true)],
          [6, () => this.#claim(false)],
          [1, () => this.#anyClaim()],
          ...this.#ifHas('exhaust', 1, () => ({ kind: 'exhaust' })),
          ...this.#whenever(),
        ]
      case 'parked':
        return [
          [12, () => ({ kind: 'redrive' })],
          ...this.#ifHas('discard', 1, () => ({ kind: 'discard' })),
          ...this.#whenever(),
        ]
      case 'idle':
        return [
          [4, () => ({ kind: 'submit' })],
          [3, () => ({ kind: 'schedule', runAt: this.#later() })],
          ...this.#whenWaiting(job),
        ]
      default:
        return [...this.#whenWaiting(job), ...this.#whenever()]
    }
  }

  #whenWaiting(job: Job): Choice[] {
    if (job.runAt === null) return this.#whenever()
    return [
      [14, () => this.#at(job.runAt, { kind: 'due' })],
      [1, () => ({ kind: 'due' })],
      ...this.#ifHas('run-now', 2, () => ({ kind: 'reschedule', runAt: this.script.clock.now() })),
    ]
  }

  #whenHeld(job: Job, status: string): Choice[] {
    const fence = this.#holder(job)
    if (status === 'COMMITTED') {
      return [
        [8, () => ({ kind: 'done', attempt: job.attempt })],
        [2, () => ({ kind: 'redrive' })],
        [1, () => ({ kind: 'repair' })],
        [1, () => this.#any()],
      ]
    }
    const leaseUntil = job.execution?.leaseUntil ?? 0
    const expire: Choice[] = job.stalled
      ? [[20, () => ({ kind: 'expire', fence, approved: true })]]
      : [[4, () => this.#at(leaseUntil, { kind: 'expire', fence })]]
    // A holder whose lease has run out cannot do anything; somebody else expires it.
    if (leaseUntil <= this.script.clock.now()) return [...expire, ...this.#whenever(0.2)]
    const both: Choice[] = [
      ...expire,
      [2, () => ({ kind: 'release', fence })],
      [0.5, () => ({ kind: 'cancel', fence })],
      // Somebody whose clock is ahead finds that the lease still runs.
      [0.5, () => ({ kind: 'expire', fence })],
      [4, () => this.#any(fence, 'fail')],
      ...this.#whenever(0.5),
    ]
    if (status === 'LEASED') return [[12, () => ({ kind: 'start', fence })], ...both]
    return [
      [2, () => this.#commit(fence, 0)],
      [4, () => this.#commit(fence, 1 + this.#roll(3))],
      [4, () => this.#any(fence, 'fail')],
      [3, () => this.#any(fence, 'step')],
      ...this.#ifHas('suspend', 2, () => ({ kind: 'suspend', fence, runAt: this.#later() })),
      ...this.#ifHas('wait', 2, () => this.#any(fence, 'wait')),
      ...both,
    ]
  }

  #whenEnded(): Choice[] {
    const again: Choice[] = this.isOver ? [] : [[6, () => ({ kind: 'redrive' })]]
    return [...again, [1, () => this.#any()]]
  }

  /** What may be asked of any job that has not ended. */
  #whenever(weight = 1): Choice[] {
    return [
      [
        weight,
        () => ({
          kind: 'prioritise',
          priority: this.#roll(5) - 2,
          aheadMs: this.#roll(3) * 60_000,
        }),
      ],
      [weight, () => ({ kind: 'reschedule', runAt: this.#later() })],
      [weight / 3, () => ({ kind: 'cancel' })],
      [weight, () => ({ kind: 'park' })],
      [weight / 3, () => ({ kind: 'force', to: this.#state() })],
      [weight / 2, () => this.#repair()],
    ]
  }

  /** Any command: of any kind or of the one given, with the fence given or with any. */
  #any(given?: Fence, kind: CommandKind = this.#oneOf(COMMAND_KINDS)): Command {
    const fence = given ?? this.#fence()
    switch (kind) {
      case 'create':
        return this.#create()
      case 'schedule':
      case 'reschedule':
        return { kind, runAt: this.#later() }
      case 'suspend':
        return { kind, fence, runAt: this.#later() }
      case 'signal':
        return { kind, name: this.#oneOf(STEPS), key: `k${this.#roll(3)}` }
      case 'wait':
        return { kind, fence, wait: this.#anyWait(), ended: this.#chance(0.5) }
      case 'arrive':
        return { kind, look: this.#anyLook() }
      case 'redrive':
        return this.#chance(0.5) ? { kind } : { kind, arrived: true }
      case 'prioritise':
        return { kind, priority: this.#roll(5) - 2 }
      case 'claim':
        return this.#anyClaim()
      case 'step':
        return { kind, fence, name: this.#oneOf(STEPS), n: 1 + this.#roll(2) }
      case 'commit':
        return this.#commit(fence, this.#roll(3))
      case 'fail':
        return { kind, fence, failure: this.#failure() }
      case 'start':
      case 'release':
        return { kind, fence }
      case 'done':
        return { kind, attempt: fence.attempt }
      case 'expire':
        return this.#chance(0.2) ? { kind, fence, approved: true } : { kind, fence }
      case 'cancel':
        return this.#chance(0.5) ? { kind } : { kind, fence }
      case 'force':
        return { kind, to: this.#state() }
      case 'repair':
        return this.#repair()
      default:
        return { kind }
    }
  }

  #anyWait(): Wait {
    const what = this.#oneOf(['sleep', 'signal', 'children'] as const)
    if (what === 'children') {
      const n = 1 + this.#roll(2)
      return { for: what, name: this.#oneOf(STEPS), n, until: null, children: this.#roll(3) }
    }
    const until = what === 'signal' && this.#chance(0.3) ? null : this.#later()
    return { for: what, name: this.#oneOf(STEPS), n: 1 + this.#roll(2), until }
  }

  #anyLook(): Look {
    const id = FOREIGN_CLAIM
    const found = this.#oneOf([{}, {}, { failed: id }, { hit: id }])
    return { open: this.#chance(0.5), ...found }
  }

  /** Links: awaited by others, a dependent of others, or neither. */
  #links(): Partial<CreateCommand> {
    const flow = { id: FOREIGN_CLAIM, n: this.#roll(3) }
    const of: readonly NodeRange[] = [[0, 2], 4]
    const need = this.#oneOf(['success', 'end', 'failure'] as const)
    const groups = [{ name: 'all', of, need, list: true }]
    const onFailure = this.#oneOf(['park', 'cancel', 'fail'] as const)
    const after: After = { groups, onFailure }
    return this.#oneOf([{}, {}, {}, { flow, awaited: true }, { flow, after }])
  }

  #create(): Command {
    const { lifecycle, clock } = this.script
    const idle = lifecycle.roles.get(lifecycle.machine.initial) === 'idle'
    const how = this.#dice.next()
    return {
      kind: 'create',
      jobId: this.#jobId,
      type: 'example',
      queue: 'default',
      ...(this.#policy !== null && { policy: this.#policy }),
      ...(how < 0.2 && { runAt: clock.now() + this.#oneOf([0, 1, 5000]) }),
      ...(how > 0.8 && idle && { hold: true }),
      ...(how >= 0.2 && how <= 0.8 && this.#links()),
    }
  }

  #claim(start: boolean): Command {
    const leaseMs = this.#oneOf([1, 1000, 30_000])
    const wait = Math.max(0, (this.#job?.runAt ?? 0) - this.script.clock.now())
    this.#wait(wait + this.#oneOf([0, 0, 7]))
    const leaseUntil = this.script.clock.now() + leaseMs
    const worker = this.#oneOf(['worker-1', 'worker-2'])
    return { kind: 'claim', claim: this.#ids.next(), worker, leaseUntil, start }
  }

  /** A claim at any time: of a job that is not due or held, or the present holder's own again. */
  #anyClaim(): Command {
    const claim = this.#chance(0.3) ? this.#fence().claim : this.#ids.next()
    const leaseUntil = this.script.clock.now() + this.#oneOf([0, 1, 30_000])
    return { kind: 'claim', claim, worker: 'worker-3', leaseUntil, start: this.#chance(0.5) }
  }

  #commit(fence: Fence, effects: number): Command {
    return { kind: 'commit', fence, ...(effects > 0 && { effects }) }
  }

  #failure(): Failure {
    const message = this.#oneOf(['it broke', ''])
    return this.#oneOf<Failure>([
      { class: 'retryable', kind: 'error', message },
      { class: 'retryable', kind: 'error', message },
      { class: 'retryable', kind: 'timeout', message },
      { class: 'retryable', kind: 'transient', message, retryAfterMs: 12_345 },
      { class: 'terminal', kind: 'validation', message },
      { class: 'invalid_input', kind: 'invalid_input', message },
    ])
  }

  #repair(): Command {
    return this.#chance(0.5) ? { kind: 'repair' } : { kind: 'repair', to: this.#state() }
  }

  #holder(job: Job): Fence {
    return { attempt: job.attempt, claim: job.execution?.claim ?? FOREIGN_CLAIM }
  }

  /** The present fence, an earlier one, or one that nobody was ever given. */
  #fence(): Fence {
    const attempt = this.#job?.attempt ?? 0
    return this.#oneOf([
      this.#fences[this.#fences.length - 1] ?? { attempt, claim: FOREIGN_CLAIM },
      this.#fences[this.#roll(this.#fences.length)] ?? { attempt, claim: FOREIGN_CLAIM },
      { attempt, claim: FOREIGN_CLAIM },
      { attempt: attempt + 1, claim: FOREIGN_CLAIM },
    ])
  }

  #ifHas(trigger: JobTrigger, weight: number, make: () => Command): Choice[] {
    return this.#has(trigger) ? [[weight, make]] : []
  }

  #has(trigger: JobTrigger): boolean {
    return this.script.lifecycle.targets.has(trigger)
  }

  #state(): string {
    return this.#oneOf([...this.script.lifecycle.roles.keys()])
  }

  /** Lets the time come, and sometimes a little more. */
  #at(time: number | null, command: Command): Command {
    this.#wait(Math.max(0, (time ?? 0) - this.script.clock.now()) + this.#oneOf([0, 0, 1, 500]))
    return command
  }

  #later(): number {
    return this.script.clock.now() + this.#oneOf([0, 1, 1000, 5000])
  }

  #wait(ms: number): void {
    this.script.clock.advance(ms)
  }

  #choose(choices: readonly Choice[]): Command {
    let rest = this.#dice.next() * choices.reduce((sum, [weight]) => sum + weight, 0)
    const chosen = choices.find(([weight]) => {
      rest -= weight
      return rest < 0
    })
    return chosen === undefined ? this.#any() : chosen[1]()
  }

  #oneOf<T>(values: readonly T[]): T {
    return values[this.#roll(values.length)] as T
  }

  #roll(below: number): number {
    return Math.floor(this.#dice.next() * below)
  }

  #chance(probability: number): boolean {
    return this.#dice.next() < probability
  }
}

/** What a holder that lost its job may still say. */
const LATE_KINDS: readonly CommandKind[] = [
  'start',
  'step',
  'commit',
  'done',
  'fail',
  'release',
  'suspend',
  'cancel',
]

/** Who would ask for such a thing. */
function requesterOf(command: Command): ScriptRequester {
  switch (command.kind) {
    case 'park':
    case 'redrive':
    case 'discard':
    case 'force':
      return { actor: 'operator', operator: 'ann', note: 'looked into it' }
    case 'repair':
      return { actor: 'doctor', operator: 'ann', note: 'the row was damaged' }
    case 'expire':
      return command.approved
        ? { actor: 'operator', operator: 'ann', note: 'approved' }
        : { actor: 'engine' }
    case 'due':
    case 'done':
    case 'exhaust':
      return { actor: 'engine' }
    case 'claim':
      return { actor: 'worker', metadata: { host: 'host-1' } }
    default:
      return { actor: 'fence' in command ? 'worker' : 'client' }
  }
}
