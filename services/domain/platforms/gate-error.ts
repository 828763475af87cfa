/** One rule of a network that a target breaks. */
export interface GateError {
  /** Of the file that is wrong; null where it is no single one. */
  readonly mediaId: string | null;
  /** JSON Pointer from the target or variant: `/content`, `/overrides/privacyLevel`, `/mediaIds`; `/coverMediaId`. */
  readonly path: string;
  readonly message: string;
  readonly code: string;
}
