// Bounds of what is taken, in bytes.

/** The largest zip: 1 GiB. */
export const FILE_LIMIT = 1 << 30;
/** A form with one. */
export const FORM_LIMIT = FILE_LIMIT + (1 << 20);
