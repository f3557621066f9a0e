/**
 * The Model Context Protocol over stdio: JSON-RPC 2.0, one message per line. Only what a server
 * with tools needs: initialize, ping, tools/list, tools/call. Requests are answered one after the
 * other, so a client cannot make the server do many things at once.
 */
import { PawlError } from '../../core/errors.ts'
import { VERSION } from '../../environment/version.ts'

/** Newest first; a client that asks for another one gets the newest. */
const PROTOCOLS = ['2025-06-18', '2025-03-26', '2024-11-05']

/** The longest message that is read. */
export const MESSAGE_MAX = 1024 * 1024
/** The longest text of a result; longer ones are cut and say so. */
const TEXT_MAX = 64 * 1024

const ERRORS = { parse: -32_700, request: -32_600, method: -32_601, params: -32_602 } as const

/** A tool: its description for the client, and its function. */
export interface Tool {
  readonly name: string
  readonly description: string
  /** A JSON schema of an object. */
  readonly inputSchema: object
  /** Returns a value that is sent as JSON text. */
  readonly run: (input: Readonly<Record<string, unknown>>) => Promise<unknown>
}

type Fields = Readonly<Record<string, unknown>>

/** Answers one line; undefined if the line is a notification or an answer. */
export async function answerLine(
  line: string,
  tools: readonly Tool[],
): Promise<string | undefined> {
  if (line.length > MESSAGE_MAX) return refusal(null, ERRORS.request, 'The message is too long')
  let message: Fields
  try {
    message = JSON.parse(line) as Fields
  } catch {
    return refusal(null, ERRORS.parse, 'The message is not JSON')
  }
  if (typeof message !== 'object' || message === null || Array.isArray(message)) {
    return refusal(null, ERRORS.request, 'The message is not an object')
  }
  const { id, method, params } = message
  if (typeof method !== 'string') {
    const isAnswer = 'result' in message || 'error' in message
    return isAnswer ? undefined : refusal(null, ERRORS.request, 'The message has no method')
  }
  if (id === undefined || id === null) return undefined
  const own = typeof params === 'object' && params !== null ? (params as Fields) : {}
  return answer(id, method, own, tools)
}

async function answer(
  id: unknown,
  method: string,
  params: Fields,
  tools: readonly Tool[],
): Promise<string> {
  switch (method) {
    case 'initialize': {
      const asked = params.protocolVersion as string
      const protocolVersion = PROTOCOLS.includes(asked) ? asked : PROTOCOLS[0]
      const serverInfo = { name: 'pawl', version: VERSION }
      return reply(id, { protocolVersion, capabilities: { tools: {} }, serverInfo })
    }
    case 'ping':
      return reply(id, {})
    case 'tools/list':
      return reply(id, { tools: tools.map(({ run: _, ...tool }) => tool) })
    case 'tools/call': {
      const tool = tools.find(({ name }) => name === params.name)
      if (tool === undefined) return refusal(id, ERRORS.params, 'There is no such tool')
      const { arguments: given } = params
      const input = typeof given === 'object' && given !== null ? (given as Fields) : {}
      return reply(id, await resultOf(tool, input))
    }
    default:
      return refusal(id, ERRORS.method, 'There is no such method')
  }
}

/** An error of a tool is a result, which an assistant can read and act on. */
async function resultOf(tool: Tool, input: Fields): Promise<object> {
  try {
    return { content: [{ type: 'text', text: bounded(JSON.stringify(await tool.run(input))) }] }
  } catch (error) {
    if (!(error instanceof PawlError)) throw error
    const { code, message, hint } = error
    const text = bounded(JSON.stringify({ error: { code, message, hint } }))
    return { content: [{ type: 'text', text }], isError: true }
  }
}

function bounded(text: string): string {
  if (text.length <= TEXT_MAX) return text
  return `${text.slice(0, TEXT_MAX)}… (cut; the whole text has ${text.length} characters)`
}

function reply(id: unknown, result: object): string {
  return JSON.stringify({ jsonrpc: '2.0', id, result })
}

function refusal(id: unknown, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } })
}
