/**
 * The world outside of the database: it takes effects and runs of steps over HTTP, and counts
 * effects by their keys. It is not to be relied upon: it refuses some, and takes others without
 * saying so, which is why a key may come twice.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SeededRandom } from 'pawl/testing'
import type { StepRun } from '../sim/checker.ts'

const REFUSED = 0.06
const UNCONFIRMED = 0.06

/** Starts a receiver on a free port of 127.0.0.1. */
export async function startReceiver(seed: number): Promise<Receiver> {
  const server = createServer({ keepAliveTimeout: 1000 })
  const receiver = new Receiver(server, new SeededRandom(seed))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return receiver
}

/** A running receiver, and what it got. */
export class Receiver {
  /** How often each effect came through, by its key. */
  readonly deliveries = new Map<string, number>()
  readonly steps: StepRun[] = []
  readonly #server: Server
  readonly #random: SeededRandom

  constructor(server: Server, random: SeededRandom) {
    this.#server = server
    this.#random = random
    server.on('request', (request, response) => {
      let body = ''
      request.setEncoding('utf8').on('data', (text: string) => {
        body += text
      })
      request.on('end', () => {
        response.statusCode = this.#take(request.url ?? '', body)
        response.end()
      })
    })
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Takes what is said, or not; gives the status of the answer. */
  #take(path: string, body: string): number {
    if (path === '/steps') {
      this.steps.push(JSON.parse(body) as StepRun)
      return 204
    }
    if (this.#random.next() < REFUSED) return 503
    const { key } = JSON.parse(body) as { key: string }
    this.deliveries.set(key, (this.deliveries.get(key) ?? 0) + 1)
    return this.#random.next() < UNCONFIRMED ? 500 : 204
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((closed) => this.#server.close(closed))
  }
}
