/** Whether a change of many jobs is really meant. */
import { createInterface } from 'node:readline'
import { NotConfirmed } from './errors.ts'
import { type Call, hasFlag } from './spec.ts'

/** Returns when it was confirmed, by --yes or by a person; throws `NotConfirmed`. */
export async function confirm(call: Call, verb: string, matched: number): Promise<void> {
  if (hasFlag(call, 'yes')) return
  const { stdin, output, interrupted } = call
  const isPerson = stdin.isTTY === true && output.isTerminal && !output.json
  const typed = isPerson ? await ask(call, `Type ${matched} to ${verb} them: `) : undefined
  if (typed?.trim() !== String(matched) || interrupted.aborted) {
    throw new NotConfirmed(verb, matched)
  }
}

function ask({ stdin, interrupted }: Call, question: string): Promise<string | undefined> {
  const reader = createInterface({ input: stdin, output: process.stderr })
  return new Promise((resolve) => {
    const end = () => {
      reader.close()
      resolve(undefined)
    }
    interrupted.addEventListener('abort', end, { once: true })
    reader.once('SIGINT', end)
    reader.once('close', () => resolve(undefined))
    reader.question(question, (answer) => {
      resolve(answer)
      reader.close()
    })
  })
}
