// Rules about the tests themselves.
import { lineAt, type Rule } from './files.ts'
import { globalsOf, importsOf } from './syntax.ts'

const focusing = /^(describe|it|suite|test)\.(only|skip|todo)$/

/** Tests that must wait for real time; each of them says in its file why no signal would do. */
const sleepsAllowed: readonly string[] = []

/** No test is left out, and none leaves the others out. */
export const allTestsRun: Rule = (files) =>
  files.flatMap((file) =>
    globalsOf(file)
      .filter(({ text }) => focusing.test(text))
      .map(({ text, start }) => `${file.path}:${lineAt(file.text, start)}: uses ${text}`),
  )

/** Tests wait for signals or move a virtual clock; they never wait for time to pass. */
export const noSleeps: Rule = (files) =>
  files
    .filter(({ path }) => !sleepsAllowed.includes(path))
    .flatMap((file) => {
      const timers = globalsOf(file).filter(({ text }) => text === 'setTimeout')
      const modules = importsOf(file).filter(({ text }) => /^(node:)?timers/.test(text))
      return [...timers, ...modules].map(
        ({ text, start }) => `${file.path}:${lineAt(file.text, start)}: may sleep by ${text}`,
      )
    })
