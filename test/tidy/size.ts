// Rules about how much a reader must hold in mind at once.
import { lineAt, type Rule } from './files.ts'
import { functionsOf } from './syntax.ts'

const fileLinesMax = 500
const functionLinesMax = 70
const columnsMax = 100

/** Files are short enough to be read as a whole. */
export const shortFiles: Rule = (files) =>
  files.flatMap(({ path, text }) => {
    const lines = text.trimEnd().split('\n').length
    return lines > fileLinesMax ? `${path} has ${lines} lines, more than ${fileLinesMax}` : []
  })

/** Functions are short enough to be seen as a whole. */
export const shortFunctions: Rule = (files) =>
  files.flatMap((file) =>
    functionsOf(file).flatMap(({ text, start, end }) => {
      const first = lineAt(file.text, start)
      const lines = lineAt(file.text, end) - first + 1
      return lines > functionLinesMax
        ? `${file.path}:${first}: ${text} has ${lines} lines, more than ${functionLinesMax}`
        : []
    }),
  )

/** Lines are short enough for two files side by side. */
export const shortLines: Rule = (files) =>
  files.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) => {
      const columns = [...line].length
      return columns > columnsMax
        ? `${path}:${index + 1}: ${columns} columns, more than ${columnsMax}`
        : []
    }),
  )
