// A TCP proxy between a client and a server, with which a test breaks the network on purpose. It
// knows nothing of what is said, except that a test may ask for the loss of one reply: see
// `loseReply`, which makes a COMMIT succeed that its client never hears of.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** Where the server is. */
export interface Address {
  readonly host: string
  readonly port: number
}

/** Which reply is lost, and how. */
export interface LostReply {
  /** What a client sends; matched against the bytes, read as Latin-1. */
  readonly to: RegExp
  /** What the server answers in the end; any answer, unless given. For clients that pipeline. */
  readonly reply?: RegExp
  /** What comes after: the connection is cut, as is usual, or stays open and silent. */
  readonly after?: 'cut' | 'silence'
}

/** A lost reply that is being waited for. */
interface Trap extends LostReply {
  readonly sprung: () => void
}

/** One client, and the connection to the server made for it. */
interface Connection {
  readonly client: Socket
  readonly server: Socket
  /** Set once the client has said what a trap waits for: its replies are lost from there on. */
  trap?: Trap
  /** Half open: nothing gets through any more, and nobody is told. */
  isSilent?: true
}

/** Decides, when it is time, whether some bytes go on to the other side. */
type Passes = (bytes: Buffer) => Promise<boolean>

/** Both directions flow freely, or stand still, or new connections are refused. */
type Mode = 'flowing' | 'stalled' | 'refusing'

/** How much of what was said before is looked at again, as a message may come in pieces. */
const overlapLength = 200

/** Starts a proxy in front of a server, on a free port of 127.0.0.1. */
export async function startTcpProxy(target: Address): Promise<TcpProxy> {
  const listener = createServer({ allowHalfOpen: true })
  const proxy = new TcpProxy(target, listener)
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return proxy
}

/** A running proxy. */
export class TcpProxy {
  readonly #target: Address
  readonly #listener: Server
  readonly #connections = new Set<Connection>()
  readonly #traps = new Set<Trap>()
  #mode: Mode = 'flowing'
  #waiting: (() => void)[] = []

  constructor(target: Address, listener: Server) {
    this.#target = target
    this.#listener = listener.on('connection', (client) => this.#accept(client))
  }

  /** The port that clients connect to. */
  get port(): number {
    return (this.#listener.address() as AddressInfo).port
  }

  /** How many clients are connected. */
  get connections(): number {
    return this.#connections.size
  }

  /** A connection string with the proxy's address in place of the server's. */
  through(url: string): string {
    return Object.assign(new URL(url), { host: `127.0.0.1:${this.port}` }).href
  }

  /** Cuts all connections; new ones are welcome. */
  cut(): void {
    for (const connection of this.#connections) this.#cutOne(connection)
    this.#wake()
  }

  /** Cuts all connections and refuses new ones, until `resume`. */
  refuse(): void {
    this.#mode = 'refusing'
    this.cut()
  }

  /** Nothing gets through in either direction, and nobody is told, until `resume`. */
  stall(): void {
    this.#mode = 'stalled'
  }

  /** The connections that there are fall silent, for ever; new ones work. */
  silence(): void {
    for (const connection of this.#connections) connection.isSilent = true
  }

  /** Lets everything flow again, what was held back first, and loses no more replies. */
  resume(): void {
    this.#mode = 'flowing'
    this.#traps.clear()
    this.#wake()
  }

  /**
   * Loses the reply to the next message of any client that matches: the message reaches the
   * server, and from then on nothing that the server says reaches that client. The promise
   * resolves when the server has answered and the connection has been cut.
   */
  loseReply(lost: LostReply): Promise<void> {
    return new Promise((sprung) => {
      this.#traps.add({ ...lost, sprung })
    })
  }

  /** Cuts all connections and stops listening. */
  async close(): Promise<void> {
    this.refuse()
    await new Promise((resolve) => this.#listener.close(resolve))
  }

  #accept(client: Socket): void {
    if (this.#mode === 'refusing') {
      client.on('error', () => {}).resetAndDestroy()
      return
    }
    const server = connect({ ...this.#target, allowHalfOpen: true })
    const connection: Connection = { client, server }
    this.#connections.add(connection)
    // However one direction ends, a broken connection is no news to the proxy.
    for (const socket of [client, server]) socket.setNoDelay().on('error', () => {})
    const requests = carry(client, server, this.#requests(connection))
    const replies = carry(server, client, this.#replies(connection))
    void Promise.all([requests, replies]).then(() => this.#connections.delete(connection))
  }

  #requests(connection: Connection): Passes {
    let before = ''
    return async (bytes) => {
      await this.#flowing(connection)
      if (connection.isSilent) return false
      const said = before + bytes.toString('latin1')
      const trap = [...this.#traps].find(({ to }) => endsAfter(before.length, to, said))
      before = said.slice(-overlapLength)
      if (trap && !connection.trap) {
        this.#traps.delete(trap)
        connection.trap = trap
      }
      return true
    }
  }

  #replies(connection: Connection): Passes {
    let lost = ''
    return async (bytes) => {
      await this.#flowing(connection)
      const { trap, isSilent } = connection
      if (isSilent) return false
      if (!trap) return true
      lost += bytes.toString('latin1')
      if (trap.reply && !trap.reply.test(lost)) return false
      if (trap.after !== 'silence') this.#cutOne(connection)
      trap.sprung()
      return false
    }
  }

  async #flowing({ client }: Connection): Promise<void> {
    while (this.#mode === 'stalled' && !client.destroyed) {
      await new Promise<void>((goOn) => this.#waiting.push(goOn))
    }
  }

  #wake(): void {
    for (const goOn of this.#waiting.splice(0)) goOn()
  }

  #cutOne(connection: Connection): void {
    this.#connections.delete(connection)
    connection.client.resetAndDestroy()
    connection.server.destroy()
  }
}

/** Carries everything that is let pass, in one direction, until an end or a break. */
async function carry(from: Socket, to: Socket, passes: Passes): Promise<void> {
  try {
    // The other direction may go on after the end of this one, so the socket has to stay.
    for await (const bytes of from.iterator({ destroyOnReturn: false })) {
      if (await passes(bytes)) await new Promise((written) => to.write(bytes, written))
    }
    to.end()
  } catch {
    // A connection that breaks on one side breaks on the other.
    from.destroy()
    to.destroy()
  }
}

/** Whether a match of the pattern ends after the given position. */
function endsAfter(position: number, pattern: RegExp, text: string): boolean {
  const flags = `${pattern.flags.replace('g', '')}g`
  const matches = [...text.matchAll(new RegExp(pattern.source, flags))]
  return matches.some(({ 0: matched, index }) => index + matched.length > position)
}
