(CNN) -- Story 1 begins

  It "goes on"  
and ends.

@highlight

First point 1

@highlight

Second”
