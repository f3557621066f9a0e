/** Whether a change of many jobs is really meant. */
import { createInterface } from 'node:readline'
import { NotConfirmed } from './errors.ts'
import { type Call, hasFlag } from './spec.ts'

/** Returns when it was confirmed, by --yes or by a person; throws `NotConfirmed`. */
export async function confirm(call: Call, verb: string, matched: number): Promise<void> {
  if (hasFlag(call, 'yes')) return
  const { stdin, output, interrupted } = call
  const isPerson = stdin.isTTY === true && output.isTerminal && !output.json
  const typed = isPerson ? await ask(call, `Type ${matched} to ${verb} them:`) : undefined
  if (typed?.trim() !== String(matched) || interrupted.aborted) {
    throw new NotConfirmed(verb, matched)
  }
}

/** The next line that is typed; nothing where there is none, or an interruption comes first. */
function ask({ stdin, output, interrupted }: Call, question: string): Promise<string | undefined> {
  output.say(question)
  const reader = createInterface({ input: stdin })
  return new Promise((resolve) => {
    reader.once('line', (line) => {
      resolve(line)
      reader.close()
    })
    reader.once('close', () => resolve(undefined))
    interrupted.addEventListener('abort', () => reader.close(), { once: true })
  })
}
