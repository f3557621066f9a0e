/** A logger for those who want none. */
import type { Logger } from '../core/ports.ts'

/** Says nothing. */
export const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} }
