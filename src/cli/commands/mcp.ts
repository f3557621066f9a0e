/** `pawl mcp`: jobs, their explanations and the doctor's plan for assistants, over stdio. */
import { UsageInvalid } from '../errors.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { answerLine, MESSAGE_MAX } from '../mcp/protocol.ts'
import { toolsOf } from '../mcp/tools.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, textOf } from '../spec.ts'

async function mcp(call: Call): Promise<ExitCode> {
  const { output, settings, stdin, interrupted } = call
  const mayOperate = textOf(call, 'allow') === 'operate'
  if (mayOperate && textOf(call, 'operator') === undefined) {
    const hint = 'Add --operator NAME: the ledger records it with the reason of each change.'
    throw new UsageInvalid('--allow operate needs the name of an operator', hint)
  }
  return withPawl(
    call,
    async (pawl) => {
      const tools = toolsOf(pawl, mayOperate ? settings.operator.value : undefined)
      output.say('Serving the Model Context Protocol on stdin and stdout.')
      for await (const line of linesOf(stdin, interrupted)) {
        const answer = line.trim() === '' ? undefined : await answerLine(line, tools)
        if (answer === undefined) continue
        output.line(answer)
        await output.taken()
        if (output.gone.aborted) break
      }
      return interrupted.aborted ? EXIT.interrupted : EXIT.ok
    },
    { onFindings: 'warn' },
  )
}

/** Lines of a stream. Of a line that is too long, only as much is kept as shows that it is. */
async function* linesOf(stream: NodeJS.ReadStream, signal: AbortSignal): AsyncGenerator<string> {
  signal.addEventListener('abort', () => stream.destroy(), { once: true })
  let rest = ''
  try {
    for await (const chunk of stream.setEncoding('utf8')) {
      const [first = '', ...others] = (chunk as string).split('\n')
      rest = `${rest}${first}`.slice(0, MESSAGE_MAX + 1)
      for (const next of others) {
        yield rest
        rest = next.slice(0, MESSAGE_MAX + 1)
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  if (rest !== '') yield rest
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'mcp',
    summary: 'Serve jobs and the doctor to an assistant, by the Model Context Protocol',
    details:
      'Reads JSON-RPC from stdin and answers on stdout, until stdin ends. Tools: list_jobs, ' +
      'show_job, explain_job, show_flow, stats and doctor_plan, which change nothing. With ' +
      '--allow operate also act_on_job, which retries, redrives or cancels one job with a ' +
      'reason. Values of members with names of usual secrets are not shown.',
    options: [
      { flags: '--allow <what>', says: 'allow changes, too', choices: ['operate'] },
      { flags: '--operator <name>', says: 'the name under which changes are recorded' },
    ],
    examples: [
      ['pawl mcp --store sqlite:./jobs.db', 'only reads'],
      ['pawl mcp --allow operate --operator assistant-of-ada', 'may change jobs'],
    ],
    run: mcp,
  },
]
