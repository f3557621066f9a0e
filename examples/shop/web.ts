/**
 * The web process of the shop. It enqueues jobs and reads them; `worker.ts` runs them.
 *
 *   POST /orders            { "id": "o-1", "email": "ada@example.org" }
 *   GET  /orders/o-1        { "id": "o-1", "state": "paid", "file": "…" }
 *   POST /imports           the lines of a file: sku,name
 *   GET  /imports/<job>     { "state": "running", "read": 500, "written": 0 }
 *   GET  /queues            the queues, with their jobs by lane
 *
 * node .build/programs/examples/shop/web.js sqlite:./shop.db ./shop-files 8080
 */
import { randomUUID } from 'node:crypto'
import { createWriteStream, mkdirSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createPawl, type Pawl } from 'pawl'
import { createTables, findOrder, importStatus, placeOrder, startImport } from './shop.ts'

const [store = 'sqlite:./shop.db', folder = './shop-files', port = '8080'] = process.argv.slice(2)

mkdirSync(folder, { recursive: true })
const pawl = await createPawl({ store })
await createTables(pawl)

const server = createServer((request, response) => {
  answer(pawl, request).then(
    (body) => {
      response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body ?? { error: 'not found' }))
    },
    (error: Error) => {
      response.writeHead(400, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: error.message }))
    },
  )
})
server.listen(Number(port), '127.0.0.1', () => {
  console.log(JSON.stringify({ listening: server.address() }))
})
process.once('SIGTERM', () => server.close(() => void pawl.close()))

async function answer(pawl: Pawl, request: IncomingMessage): Promise<object | undefined> {
  const [, what, id] = (request.url ?? '').split('/')
  switch (`${request.method} ${what}`) {
    case 'POST orders': {
      const order = (await json(request)) as { id: string; email: string }
      return { job: await placeOrder(pawl, order.id, order.email) }
    }
    case 'GET orders':
      return findOrder(pawl, id ?? '')
    case 'POST imports': {
      const file = join(folder, `${randomUUID()}.csv`)
      await pipeline(request, createWriteStream(file))
      return { job: await startImport(pawl, file) }
    }
    case 'GET imports':
      return importStatus(pawl, id ?? '')
    case 'GET queues':
      return { queues: await pawl.queues.list() }
    default:
      return undefined
  }
}
