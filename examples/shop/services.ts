/** A bank and a mail server for the example: one fails at random, the other writes to a file. */
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SeededRandom } from 'pawl/testing'
import type { Services } from './handlers.ts'

/** Services that keep what they did in a folder. Every third call of the bank fails. */
export function fakeServices(folder: string, seed: number): Services {
  const random = new SeededRandom(seed)
  const note = (file: string, line: object) =>
    appendFile(join(folder, file), `${JSON.stringify(line)}\n`)
  return {
    folder,
    bank: {
      async charge(order, key) {
        if (random.next() < 1 / 3) throw new Error('The bank does not answer')
        await note('charges.ndjson', { order, key })
        return `charge of ${order}`
      },
    },
    mail: {
      send: (to, text, key) => note('mails.ndjson', { to, text, key }),
    },
  }
}
