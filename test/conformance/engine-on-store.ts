// The engine on either kind of store, under a time that the test owns, with everything that it
// does on record: calls of the store, states of the worker, events and log lines.
import { createPawl, type JobDefinition, type PawlEvent, type WorkOptions } from 'pawl'
import { onTestFinished } from 'vitest'
import type { Store } from '../../src/stores/contract/store.ts'
import { type Examined, type STORES, until } from '../stores/examined-stores.ts'

type Level = 'debug' | 'info' | 'warn' | 'error'
type Worker = Awaited<ReturnType<Awaited<ReturnType<typeof createPawl>>['work']>>
// biome-ignore lint/suspicious/noExplicitAny: any type of job
type AnyJob = JobDefinition<any, any, any, any, any>

/** A line of the log. */
export interface Line {
  readonly level: Level
  readonly fields: Record<string, unknown>
  readonly text: string
}

/** A call of the store, and the state in which the worker was. */
export interface Call {
  readonly verb: string
  readonly state: string | undefined
  readonly at: number
}

/** An engine, and what it did. */
export class EngineOnStore {
  readonly calls: Call[] = []
  readonly events: PawlEvent[] = []
  readonly lines: Line[] = []
  /** Called before each verb of the store; what it throws the verb throws. */
  onCall: (verb: string) => void = () => {}
  worker: Worker | undefined
  readonly examined: Examined
  #pawl: Awaited<ReturnType<typeof createPawl>> | undefined

  private constructor(examined: Examined) {
    this.examined = examined
  }

  static async open(
    open: (typeof STORES)[number]['open'],
    jobs: readonly AnyJob[],
  ): Promise<EngineOnStore> {
    const engine = new EngineOnStore(await open())
    const log = (level: Level) => (fields: object, text: string) => {
      engine.lines.push({ level, fields: fields as Record<string, unknown>, text })
    }
    engine.#pawl = await createPawl({
      store: engine.#tapped(engine.examined.store),
      jobs,
      environment: engine.examined.environment,
      logger: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
      onEvent: (event) => void engine.events.push(event),
    })
    onTestFinished(async () => {
      let isClosed = false
      void engine.pawl.close().then(() => {
        isClosed = true
      })
      await engine.until(() => isClosed)
    })
    return engine
  }

  get pawl() {
    return this.#pawl as Awaited<ReturnType<typeof createPawl>>
  }

  /** The store itself; its calls are not on record. */
  get store(): Store {
    return this.examined.store
  }

  get state(): string | undefined {
    return this.worker?.states[0]
  }

  /** The states that the worker went through, each as "from → to". */
  get trace(): string[] {
    return this.events.flatMap((event) =>
      event.type === 'state' ? [`${event.from} → ${event.to}`] : [],
    )
  }

  async work(options: WorkOptions = {}): Promise<Worker> {
    this.worker = await this.pawl.work({ concurrency: 1, poll: '1s', ...options })
    return this.worker
  }

  until(condition: () => boolean | Promise<boolean>, stepMs?: number): Promise<void> {
    return until(this.examined, condition, stepMs)
  }

  /** Lets so much time pass. */
  async pass(ms: number, stepMs?: number): Promise<void> {
    const end = this.store.now() + ms
    await this.until(() => this.store.now() >= end, stepMs)
  }

  #tapped(store: Store): Store {
    return new Proxy(store, {
      get: (target, key: keyof Store) => {
        const value: unknown = target[key]
        if (typeof value !== 'function') return value
        const verb = value.bind(target) as (...values: unknown[]) => unknown
        const name = String(key)
        // Subscriptions and looks at the clock are no calls of the database.
        if (/^on[A-Z]|^now$|^close$|^timeStatus$/.test(name)) return verb
        return (...values: unknown[]) => {
          this.calls.push({ verb: name, state: this.state, at: target.now() })
          try {
            this.onCall(name)
          } catch (error) {
            return Promise.reject(error)
          }
          return verb(...values)
        }
      },
    })
  }
}
