/** What the ten networks take of files: rules as data, and the pure functions that hold a file against them. */
export { minVideoBytes } from './media-blocks.ts';
export type * from './media-rules.ts';
export { mediaRules, useRules } from './media-table.ts';
export { coverOf, posterFits, takesCover, useOf } from './media-use.ts';
export { isStill, type Misfit, violations as misfits, wrapping } from './media-violations.ts';
