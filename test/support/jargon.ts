/**
 * Whether a message for a person holds what only a program would say: a piece of a regular expression, a keyword of JSON
 * Schema, or a phrase of the validator.
 */
export const isJargon = (message: string): boolean => pieces.test(message) || phrases.test(message);

const pieces = /[\^$\\|*+[\]]|\(\?|\\[dSsw]|\{\d+(,\d*)?\}|\.\*/;
const phrases =
  /\bNOT\b|must match|schema|\b(anyOf|oneOf|allOf|const|enum|minItems|maxItems|minLength|maxLength|additionalProperties)\b|equal to constant|\bmust be (string|integer|number|boolean|array|object|null)\b|fewer than|required property|[<>]=/;
