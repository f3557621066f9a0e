/** Asks a person questions, for example to confirm a change of many jobs. */
import { createInterface } from 'node:readline'
import { NotConfirmed } from './errors.ts'
import { type Call, hasFlag } from './spec.ts'

/** Returns if --yes was given or a person typed the number; throws `NotConfirmed` otherwise. */
export async function confirm(call: Call, verb: string, matched: number): Promise<void> {
  if (hasFlag(call, 'yes')) return
  const { stdin, output, interrupted } = call
  const isPerson = stdin.isTTY === true && output.isTerminal && !output.json
  const typed = isPerson ? await askLine(call, `Type ${matched} to ${verb} them:`) : undefined
  if (typed?.trim() !== String(matched) || interrupted.aborted) {
    throw new NotConfirmed(verb, matched)
  }
}

/** Returns the typed line, or `undefined` if the input ends or the command is interrupted. */
export function askLine(
  { stdin, output, interrupted }: Call,
  question: string,
): Promise<string | undefined> {
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
