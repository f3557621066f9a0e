// `npm run build`: the package in dist, the examples and scripts in .build/programs.
import { prepareOrExit } from './prepare.mjs'

await prepareOrExit()
