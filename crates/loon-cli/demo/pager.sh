# Splits a list of lines into pages of a fixed size.

# Prints how many pages LINES lines fill at SIZE lines a page.
page_count() {
  local lines=$1 size=$2
  echo $(( lines / size ))
}

# Prints the number of the first line on PAGE, counted from 1.
first_line() {
  local page=$1 size=$2
  echo $(( (page - 1) * size + 1 ))
}
